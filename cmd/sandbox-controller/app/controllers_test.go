// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"k8s.io/component-base/metrics"

	"github.com/sandbox-apiserver/sandbox-apiserver/cmd/sandbox-controller/app/options"
	sandboxfake "github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/clientset/versioned/fake"
)

func TestControllersWatchWhatTheyReconcile(t *testing.T) {
	for name, test := range map[string]struct {
		extensions bool
		workers    int
		want       []string
	}{
		"all kinds":      {true, 4, []string{"sandboxclaims", "sandboxes", "sandboxtemplates", "sandboxwarmpools"}},
		"Sandboxes only": {false, 1, []string{"sandboxes"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := options.New()
			o.Extensions.Enabled = test.extensions
			kube, sandboxes := fake.NewClientset(), sandboxfake.NewSimpleClientset()
			broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: kube.EventsV1()})
			defer broadcaster.Shutdown()
			c, err := newControllers(kube, sandboxes, broadcaster, o)
			if err != nil {
				t.Fatal(err)
			}
			registry := metrics.NewKubeRegistry()
			c.register(registry.MustRegister, registry.CustomMustRegister)

			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			c.start(ctx)
			stopped := make(chan struct{})
			go func() {
				defer close(stopped)
				c.run(ctx)
			}()
			err = wait.PollUntilContextCancel(ctx, 5*time.Millisecond, true, func(context.Context) (bool, error) { return c.hasSynced(), nil })
			if err != nil {
				t.Fatal("the caches are not filled")
			}
			// A cache is filled before it is watched what follows.
			err = wait.PollUntilContextCancel(ctx, 5*time.Millisecond, true, func(context.Context) (bool, error) {
				return len(watched(&sandboxes.Fake)) >= len(test.want), nil
			})
			if err != nil {
				t.Error("not all kinds are watched")
			}
			stop()
			<-stopped

			if diff := cmp.Diff(test.want, watched(&sandboxes.Fake)); diff != "" {
				t.Errorf("watched resources differ (-want +got):\n%s", diff)
			}
			if len(c.workers) != test.workers {
				t.Errorf("%d controllers", len(c.workers))
			}
			if _, err := registry.Gather(); err != nil {
				t.Error(err)
			}
		})
	}
}

// watched returns the resources that were watched, in order.
func watched(server *clienttesting.Fake) []string {
	var resources []string
	for _, action := range server.Actions() {
		if action.GetVerb() == "watch" {
			resources = append(resources, action.GetResource().Resource)
		}
	}
	slices.Sort(resources)
	return slices.Compact(resources)
}
