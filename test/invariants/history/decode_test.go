// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"

	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/generated/clientset/versioned/scheme"
)

var (
	storedClaim = &extensionsv1beta1.SandboxClaim{
		TypeMeta:   metav1.TypeMeta{APIVersion: extensionsv1beta1.SchemeGroupVersion.String(), Kind: "SandboxClaim"},
		ObjectMeta: metav1.ObjectMeta{UID: "claim-c", Annotations: map[string]string{AttemptAnnotation: "c"}},
		Spec: extensionsv1beta1.SandboxClaimSpec{
			WarmPoolRef: extensionsv1beta1.SandboxWarmPoolRef{Name: "p"},
			Env:         []extensionsv1beta1.EnvVar{{Name: "A"}},
			Lifecycle: &extensionsv1beta1.Lifecycle{
				ShutdownTime: new(metav1.Unix(1, 0)), ShutdownPolicy: extensionsv1beta1.ClaimShutdownPolicyDelete,
			},
		},
		Status: extensionsv1beta1.SandboxClaimStatus{
			Conditions: []metav1.Condition{{Type: extensionsv1beta1.ClaimConditionReady, Status: metav1.ConditionTrue, Reason: "DependenciesReady"}},
			Sandbox:    extensionsv1beta1.ClaimedSandboxStatus{Name: "s", PodIPs: ips},
		},
	}
	storedSandbox = &agentsv1beta1.Sandbox{
		TypeMeta: metav1.TypeMeta{APIVersion: agentsv1beta1.SchemeGroupVersion.String(), Kind: "Sandbox"},
		ObjectMeta: metav1.ObjectMeta{
			UID:         "sandbox-s",
			Labels:      map[string]string{agentsv1beta1.LaunchTypeLabel: agentsv1beta1.LaunchTypeWarm},
			Annotations: map[string]string{extensionsv1beta1.ReservedForClaimAnnotation: "somebody"},
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "v1", Kind: "Pod", Name: "other", UID: "other"},
				{APIVersion: extensionsv1beta1.GroupName + "/v1", Kind: "SandboxClaim", Name: "c", UID: "claim-c", Controller: new(true)},
			},
			DeletionTimestamp: &metav1.Time{},
		},
		Status: agentsv1beta1.SandboxStatus{
			Conditions: []metav1.Condition{{Type: agentsv1beta1.SandboxConditionReady, Status: metav1.ConditionTrue}},
			PodIPs:     ips,
		},
	}
	storedPool = &extensionsv1beta1.SandboxWarmPool{
		TypeMeta:   metav1.TypeMeta{APIVersion: extensionsv1beta1.SchemeGroupVersion.String(), Kind: "SandboxWarmPool"},
		ObjectMeta: metav1.ObjectMeta{UID: "pool-p"},
		Spec:       extensionsv1beta1.SandboxWarmPoolSpec{Replicas: new(int32(3))},
		Status:     extensionsv1beta1.SandboxWarmPoolStatus{Replicas: 2, ReadyReplicas: 1},
	}
)

const (
	storedClaims    = Prefix + extensionsv1beta1.GroupName + "/" + Claims
	storedSandboxes = Prefix + agentsv1beta1.GroupName + "/" + Sandboxes
	storedPools     = Prefix + extensionsv1beta1.GroupName + "/" + Pools
)

func put(t *testing.T, revision int64, key string, object runtime.Object) *clientv3.Event {
	t.Helper()
	var value bytes.Buffer
	if err := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(object, &value); err != nil {
		t.Fatal(err)
	}
	return &clientv3.Event{Type: clientv3.EventTypePut, Kv: &mvccpb.KeyValue{Key: []byte(key), Value: value.Bytes(), ModRevision: revision}}
}

func TestDecode(t *testing.T) {
	events := []*clientv3.Event{
		put(t, 1, storedPools+"/ns/p", storedPool),
		put(t, 2, storedClaims+"/ns/c", storedClaim),
		put(t, 2, storedSandboxes+"/ns/s", storedSandbox),
		// Not an object, but what a server keeps for itself.
		{Type: clientv3.EventTypePut, Kv: &mvccpb.KeyValue{Key: []byte("/other"), Value: []byte("?"), ModRevision: 3}},
		{Type: clientv3.EventTypeDelete, Kv: &mvccpb.KeyValue{Key: []byte(storedClaims + "/ns/c"), ModRevision: 4}},
	}
	got, err := Decode(events)
	if err != nil {
		t.Fatal(err)
	}
	want := []Transaction{
		{1, at(pool("p", 3, func(o *Object) { o.Pool.Counted, o.Pool.CountedReady = 2, 1 }))},
		{2, at(
			claim("c", "s", expiring, func(o *Object) { o.Claim.Cold = true }),
			claimed("s", "c", deleting, func(o *Object) { o.Sandbox.ReservedFor = "somebody" }),
		)},
		{4, at(deletion(Claims, "c"))},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("transactions differ (-want +got):\n%s", diff)
	}
}

func TestDecodeFailsOnWhatIsNoObject(t *testing.T) {
	template := &extensionsv1beta1.SandboxTemplate{
		TypeMeta: metav1.TypeMeta{APIVersion: extensionsv1beta1.SchemeGroupVersion.String(), Kind: "SandboxTemplate"},
	}
	for name, events := range map[string][]*clientv3.Event{
		"no object":  {{Type: clientv3.EventTypePut, Kv: &mvccpb.KeyValue{Key: []byte(storedPools + "/ns/p"), Value: []byte("?")}}},
		"other kind": {put(t, 1, storedPools+"/ns/p", template)},
	} {
		if got, err := Decode(events); err == nil {
			t.Errorf("%s: got %v and no error", name, got)
		}
	}
}
