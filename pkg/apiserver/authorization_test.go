// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// reviewer is a kube-apiserver that answers SubjectAccessReviews, and what names it was asked about.
type reviewer struct {
	allowed func(name string) bool
	asked   []string
}

func (r *reviewer) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var review authorizationv1.SubjectAccessReview
	if err := json.NewDecoder(req.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	name := review.Spec.ResourceAttributes.Name
	r.asked = append(r.asked, name)
	review.Status.Allowed = r.allowed(name)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(review)
}

// authorizer returns the server's authorizer, which asks the reviewer.
func (r *reviewer) authorizer(t *testing.T) authorizer.Authorizer {
	t.Helper()
	listener := httptest.NewServer(r)
	t.Cleanup(listener.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: listener.URL})
	if err != nil {
		t.Fatal(err)
	}
	delegating, err := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: client.AuthorizationV1(),
		AllowCacheTTL:             time.Minute,
		DenyCacheTTL:              time.Minute,
		WebhookRetryBackoff:       &wait.Backoff{Steps: 1},
	}.New()
	if err != nil {
		t.Fatal(err)
	}
	return namesLast{delegating}
}

func TestReviewsOfRequestsForManyObjects(t *testing.T) {
	names := []string{"a", "b", "c"}
	everything := func(string) bool { return true }
	for name, test := range map[string]struct {
		user, verb string
		allowed    func(name string) bool
		wantAsked  []string
		want       map[string]bool
	}{
		"garbage collector": {
			garbageCollector, "delete", everything,
			[]string{""}, map[string]bool{"a": true, "b": true, "c": true},
		},
		"garbage collector that may delete one object": {
			garbageCollector, "delete", func(name string) bool { return name == "b" },
			[]string{"", "a", "b", "c"}, map[string]bool{"a": false, "b": true, "c": false},
		},
		"garbage collector that does something else": {
			garbageCollector, "impersonate", everything,
			names, map[string]bool{"a": true, "b": true, "c": true},
		},
		"somebody who may delete all objects but one": {
			"somebody", "delete", func(name string) bool { return name != "b" },
			names, map[string]bool{"a": true, "b": false, "c": true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := &reviewer{allowed: test.allowed}
			asks := r.authorizer(t)
			got := map[string]bool{}
			for _, name := range names {
				decision, _, err := asks.Authorize(t.Context(), authorizer.AttributesRecord{
					User: &user.DefaultInfo{Name: test.user}, Verb: test.verb, Namespace: "default", APIGroup: "agents.x-k8s.io", APIVersion: "v1beta1",
					Resource: "sandboxes", Name: name, ResourceRequest: true,
				})
				if err != nil {
					t.Fatal(err)
				}
				got[name] = decision == authorizer.DecisionAllow
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("what is allowed (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.wantAsked, r.asked); diff != "" {
				t.Errorf("names that kube-apiserver is asked about (-want +got):\n%s", diff)
			}
		})
	}
}
