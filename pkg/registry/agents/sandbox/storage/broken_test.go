// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/registry/rest"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	"k8s.io/utils/ptr"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/install"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/agents/sandbox/storage"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/registry/status"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/registrytest"
)

// brokenName is the name of the object that is put past the API.
const brokenName = "broken"

// tamperedStore is an endpoint whose etcd the test writes to directly. It holds one sound Sandbox from the start.
type tamperedStore struct {
	*storage.REST
	status *status.REST
	etcd   *clientv3.Client
	codec  runtime.Codec
}

func newTamperedStore(t *testing.T) tamperedStore {
	t.Helper()
	scheme := runtime.NewScheme()
	install.Install(scheme)
	codec, etcd := registrytest.Codec(t, scheme, agents.SchemeGroupVersion, v1beta1.SchemeGroupVersion), registrytest.StartEtcd(t)
	endpoint, status, err := storage.NewREST(scheme, registrytest.RESTOptions(codec, agents.Resource("sandboxes"), etcd))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(endpoint.Destroy)
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{etcd}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := endpoint.Create(registrytest.Context(t.Context()), validSandbox(), rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return tamperedStore{endpoint, status, client, codec}
}

// put writes the value of the object with the name brokenName.
func (s tamperedStore) put(t *testing.T, value string) {
	t.Helper()
	if _, err := s.etcd.Put(t.Context(), registrytest.EtcdPrefix+"/agents.x-k8s.io/sandboxes/"+namespace+"/"+brokenName, value); err != nil {
		t.Fatal(err)
	}
}

func (s tamperedStore) list(t *testing.T) ([]string, error) {
	t.Helper()
	obj, err := s.List(registrytest.Context(t.Context()), &metainternalversion.ListOptions{})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, sandbox := range obj.(*agents.SandboxList).Items {
		names = append(names, sandbox.Name)
	}
	return names, nil
}

func (s tamperedStore) delete(t *testing.T, name string) error {
	t.Helper()
	_, _, err := s.Delete(registrytest.Context(t.Context()), name, rest.ValidateAllObjectFunc, &metav1.DeleteOptions{})
	return err
}

// TestUndecodableObject pins what the library does with a stored value that is no object (case V7). It fails closed: a list that left
// the object out would tell every controller that it is gone. Nothing that comes in through the API is stored in such a form.
func TestUndecodableObject(t *testing.T) {
	s := newTamperedStore(t)
	s.put(t, "k8s\x00no protobuf")

	if names, err := s.list(t); err == nil {
		t.Errorf("the list leaves it out: %v", names)
	}
	if _, err := s.Get(registrytest.Context(t.Context()), brokenName, &metav1.GetOptions{}); err == nil || apierrors.IsNotFound(err) {
		t.Errorf("get: error is %v, want one that does not say that there is no such object", err)
	}
	if err := s.delete(t, brokenName); err == nil {
		t.Error("it was deleted without having been read")
	}
	if _, err := s.Get(registrytest.Context(t.Context()), "sandbox", &metav1.GetOptions{}); err != nil {
		t.Errorf("getting another object: %v", err)
	}
	if err := s.delete(t, "sandbox"); err != nil {
		t.Errorf("deleting another object: %v", err)
	}
}

// TestUndecodableObjectIsFoundAndRemoved is about the way out that the library offers behind a feature gate: the failed list names the
// object, and whoever has the right to may delete it unread.
func TestUndecodableObjectIsFoundAndRemoved(t *testing.T) {
	featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, features.AllowUnsafeMalformedObjectDeletion, true)
	s := newTamperedStore(t)
	s.put(t, "k8s\x00no protobuf")

	_, err := s.list(t)
	if reason := apierrors.ReasonForError(err); reason != metav1.StatusReasonStoreReadError {
		t.Fatalf("list: error is %v with reason %q, want StoreReadError", err, reason)
	}
	causes := err.(apierrors.APIStatus).Status().Details.Causes
	if len(causes) != 1 || !strings.HasSuffix(causes[0].Field, "/"+brokenName) {
		t.Errorf("causes are %v, want one that names the object", causes)
	}
	if err := s.delete(t, brokenName); err == nil {
		t.Error("it was deleted without anybody having asked for it to be deleted unread")
	}
	unread := &metav1.DeleteOptions{IgnoreStoreReadErrorWithClusterBreakingPotential: ptr.To(true)}
	if _, _, err := s.GetCorruptObjDeleter().Delete(registrytest.Context(t.Context()), brokenName, rest.ValidateAllObjectFunc, unread); err != nil {
		t.Fatalf("deleting it unread: %v", err)
	}
	names, err := s.list(t)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"sandbox"}, names); diff != "" {
		t.Errorf("the list afterwards (-want +got):\n%s", diff)
	}
}

// TestInvalidObject stores what today's rules forbid, as an older release may have: it is listed among the others, can be written to,
// and can be deleted.
func TestInvalidObject(t *testing.T) {
	for name, breakIt := range map[string]func(*agents.SandboxSpec){
		"no containers":      func(s *agents.SandboxSpec) { s.PodTemplate.Spec.Containers = nil },
		"unknown mode":       func(s *agents.SandboxSpec) { s.OperatingMode = "Paused" },
		"claim without size": func(s *agents.SandboxSpec) { s.VolumeClaimTemplates = make([]agents.PersistentVolumeClaimTemplate, 1) },
		"bad Pod label":      func(s *agents.SandboxSpec) { s.PodTemplate.Metadata.Labels = map[string]string{"a b": "c d"} },
		"port of no kind": func(s *agents.SandboxSpec) {
			s.PodTemplate.Spec.Containers[0].LivenessProbe = &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
				TCPSocket: &corev1.TCPSocketAction{Port: intstr.IntOrString{Type: 2}},
			}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newTamperedStore(t)
			broken := validSandbox()
			broken.Name = brokenName
			breakIt(&broken.Spec)
			encoded, err := runtime.Encode(s.codec, broken)
			if err != nil {
				t.Fatal(err)
			}
			s.put(t, string(encoded))

			names, err := s.list(t)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{brokenName, "sandbox"}, names); diff != "" {
				t.Errorf("list (-want +got):\n%s", diff)
			}
			s.write(t, "a finalizer", s.Store.Update, func(sandbox *agents.Sandbox) { sandbox.Finalizers = []string{"example.com/a"} })
			s.write(t, "no finalizer", s.Store.Update, func(sandbox *agents.Sandbox) { sandbox.Finalizers = nil })
			s.write(t, "the mode", s.Store.Update, func(sandbox *agents.Sandbox) { sandbox.Spec.OperatingMode = agents.SandboxOperatingModeSuspended })
			s.write(t, "the status", s.status.Update, func(sandbox *agents.Sandbox) { sandbox.Status.NodeName = "node" })
			if err := s.delete(t, brokenName); err != nil {
				t.Errorf("delete: %v", err)
			}
		})
	}
}

// write changes the broken object through one of its endpoints.
func (s tamperedStore) write(t *testing.T, what string, update updateFunc, change func(*agents.Sandbox)) {
	t.Helper()
	obj, err := s.Get(registrytest.Context(t.Context()), brokenName, &metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	sandbox := obj.(*agents.Sandbox)
	change(sandbox)
	if _, _, err := update(registrytest.Context(t.Context()), brokenName, rest.DefaultUpdatedObjectInfo(sandbox),
		rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, &metav1.UpdateOptions{}); err != nil {
		t.Errorf("writing %s: %v", what, err)
	}
}

type updateFunc = func(context.Context, string, rest.UpdatedObjectInfo, rest.ValidateObjectFunc, rest.ValidateObjectUpdateFunc, bool,
	*metav1.UpdateOptions) (runtime.Object, bool, error)
