// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

// hashOfMySandbox is the name hash of "my-sandbox", which the contract gives as an example.
const hashOfMySandbox = "374de8f5"

// podMetadata returns an option of framework.NewSandbox that sets the metadata of the Pod.
func podMetadata(labels, annotations map[string]string) func(*v1beta1.Sandbox) {
	return with(func(spec *v1beta1.SandboxSpec) {
		spec.PodTemplate.Metadata = v1beta1.PodMetadata{Labels: labels, Annotations: annotations}
	})
}

// existing creates a Pod that is there before its Sandbox.
func existing(t *tester, namespace, name string, labels map[string]string, owners []metav1.OwnerReference) *corev1.Pod {
	t.Helper()
	spec := framework.PodSpec("example.com/other")
	spec.SchedulerName = "nobody"
	pod, err := env.kube.CoreV1().Pods(namespace).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, OwnerReferences: owners}, Spec: spec,
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

// podHas returns a check of labels and annotations of a Pod; an empty value means that the key is not there.
func podHas(labels, annotations map[string]string) func(*corev1.Pod) error {
	check := func(what string, want, got map[string]string) error {
		for key, value := range want {
			if actual, set := got[key]; actual != value || set != (value != "") {
				return fmt.Errorf("%s %s is %q in %v, want %q", what, key, actual, got, value)
			}
		}
		return nil
	}
	return func(pod *corev1.Pod) error {
		return errors.Join(check("label", labels, pod.Labels), check("annotation", annotations, pod.Annotations))
	}
}

// TestPod has the rules of how a Sandbox and its Pod belong together.
func TestPod(t *testing.T) {
	runRows(t,
		row{id: "made", rule: "the Pod has the name of the Sandbox, the spec of the template, the hash of the name as a label, and the Sandbox as its controller", run: func(t *tester) {
			namespace := newNamespace(t)
			sandbox := create(t, namespace, "my-sandbox", unscheduled)
			pod := awaitPod(t, namespace, "my-sandbox")
			controlled(t, pod, sandbox)
			if diff := cmp.Diff(map[string]string{v1beta1.SandboxNameHashLabel: hashOfMySandbox}, pod.Labels); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
			want, got := sandbox.Spec.PodTemplate.Spec, pod.Spec
			if got.Containers[0].Name != want.Containers[0].Name || got.Containers[0].Image != want.Containers[0].Image || got.SchedulerName != want.SchedulerName || got.Hostname != "" || got.Subdomain != "" {
				t.Errorf("spec is %+v", got)
			}
			if !slices.ContainsFunc(pod.ManagedFields, func(e metav1.ManagedFieldsEntry) bool { return e.Manager == "sandbox-controller" }) {
				t.Errorf("sandbox-controller is not among the managers: %+v", pod.ManagedFields)
			}
		}},
		row{id: "pod-name-annotation", rule: "the annotation pod-name is not written", beyond: "since v1.0.0", run: func(t *tester) {
			namespace := newNamespace(t)
			create(t, namespace, "box")
			if got := await(t, namespace, "box", ready()).Annotations; len(got) != 0 {
				t.Errorf("annotations are %v", got)
			}
		}},
		row{id: "volumes", rule: "each volumeClaimTemplate is a volume of its name in the Pod, after the others, in the place of one of the same name", run: func(t *tester) {
			namespace := newNamespace(t)
			create(t, namespace, "box", unscheduled, framework.WithVolume("one"), framework.WithVolume("two"), with(func(s *v1beta1.SandboxSpec) {
				s.PodTemplate.Spec.Volumes = []corev1.Volume{{Name: "two", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}, {Name: "own", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
			}))
			var got []string
			for _, volume := range awaitPod(t, namespace, "box").Spec.Volumes[:3] {
				entry := volume.Name
				if volume.PersistentVolumeClaim != nil {
					entry += "=" + volume.PersistentVolumeClaim.ClaimName
				}
				got = append(got, entry)
			}
			if diff := cmp.Diff([]string{"own", "one=one-box", "two=two-box"}, got); diff != "" {
				t.Errorf("volumes (-want +got):\n%s", diff)
			}
		}},
		row{id: "metadata", rule: "labels and annotations of the template reach the Pod, and their keys are listed there in order; reserved keys do not", run: func(t *tester) {
			namespace := newNamespace(t)
			create(t, namespace, "my-sandbox", unscheduled, podMetadata(
				map[string]string{"z": "1", "a": "2", "agents.x-k8s.io/sandbox-name-hash": "forged", "agents.x-k8s.io/claim-uid": "forged", "extensions.agents.x-k8s.io/x": "forged"},
				map[string]string{"n": "3", "agents.x-k8s.io/propagated-labels": "forged", "opentelemetry.io/trace-context": "forged"}))
			pod := awaitPod(t, namespace, "my-sandbox")
			if diff := cmp.Diff(map[string]string{"z": "1", "a": "2", v1beta1.SandboxNameHashLabel: hashOfMySandbox}, pod.Labels); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
			if err := podHas(nil, map[string]string{
				"n": "3", v1beta1.PropagatedLabelsAnnotation: "a,z", v1beta1.PropagatedAnnotationsAnnotation: "n", v1beta1.TraceContextAnnotation: "",
			})(pod); err != nil {
				t.Error(err)
			}
		}},
		row{id: "metadata-follows", rule: "the Pod follows changes of the template's metadata; what others have put on it stays", run: func(t *tester) {
			namespace := newNamespace(t)
			pod := createWithPod(t, namespace, "box", podReady, podMetadata(map[string]string{"goes": "1", "changes": "1"}, map[string]string{"goes": "1"}))
			patchPod(t, namespace, "box", `{"metadata":{"labels":{"foreign":"1","changes":"foreign"},"annotations":{"foreign":"1"}}}`)
			patch(t, namespace, "box", `{"spec":{"podTemplate":{"metadata":{"labels":{"goes":null,"changes":"2","comes":"2"},"annotations":{"goes":null}}}}}`)
			awaitPodIs(t, namespace, "box", podHas(
				map[string]string{"goes": "", "changes": "2", "comes": "2", "foreign": "1"},
				map[string]string{"goes": "", "foreign": "1", v1beta1.PropagatedLabelsAnnotation: "changes,comes"}))
			if now := awaitPod(t, namespace, "box"); now.UID != pod.UID {
				t.Error("the Pod was replaced")
			}
		}},
		row{id: "metadata-repaired", rule: "labels that the Sandbox prescribes are set again when somebody changes them", run: func(t *tester) {
			namespace := newNamespace(t)
			createWithPod(t, namespace, "my-sandbox", podReady, podMetadata(map[string]string{"a": "1"}, nil))
			patchPod(t, namespace, "my-sandbox", `{"metadata":{"labels":{"a":"forged","agents.x-k8s.io/sandbox-name-hash":"forged","agents.x-k8s.io/created-by":"forged"}}}`)
			awaitPodIs(t, namespace, "my-sandbox", podHas(map[string]string{"a": "1", v1beta1.SandboxNameHashLabel: hashOfMySandbox, v1beta1.CreatedByLabel: ""}, nil))
		}},
		row{id: "created-by", rule: "the label created-by of the Sandbox is on the Pod, with values nobody knows made one, and goes with it", run: func(t *tester) {
			namespace := newNamespace(t)
			for value, want := range map[string]string{"go-client": "go-client", "somebody": "unknown"} {
				create(t, namespace, value, unscheduled, func(s *v1beta1.Sandbox) { s.Labels = map[string]string{v1beta1.CreatedByLabel: value} })
				awaitPodIs(t, namespace, value, podHas(map[string]string{v1beta1.CreatedByLabel: want}, nil))
			}
			patch(t, namespace, "go-client", `{"metadata":{"labels":{"agents.x-k8s.io/created-by":null}}}`)
			awaitPodIs(t, namespace, "go-client", podHas(map[string]string{v1beta1.CreatedByLabel: ""}, nil))
		}},
		row{id: "labels-of-a-pool", rule: "labels of pools and claims on a Sandbox that neither controls do not reach the Pod", run: func(t *tester) {
			namespace := newNamespace(t)
			create(t, namespace, "my-sandbox", unscheduled, func(s *v1beta1.Sandbox) {
				s.Labels = map[string]string{v1beta1.WarmPoolSandboxLabel: "a", v1beta1.SandboxTemplateRefHashLabel: "b", v1beta1.ClaimUIDLabel: "c"}
			})
			if got := awaitPod(t, namespace, "my-sandbox").Labels; len(got) != 1 {
				t.Errorf("labels are %v", got)
			}
		}},
		row{id: "labels-of-a-pool-that-controls", rule: "they do from a Sandbox that a pool controls, whatever the version of the reference", run: func(t *tester) {
			namespace := newNamespace(t)
			create(t, namespace, "my-sandbox", unscheduled, func(s *v1beta1.Sandbox) {
				s.Labels = map[string]string{v1beta1.WarmPoolSandboxLabel: "a", v1beta1.SandboxTemplateRefHashLabel: "b", v1beta1.ClaimUIDLabel: "c"}
				s.OwnerReferences = []metav1.OwnerReference{{
					APIVersion: "extensions.agents.x-k8s.io/v1alpha1", Kind: "SandboxWarmPool", Name: "pool", UID: "of-a-pool", Controller: new(true),
				}}
			})
			awaitPodIs(t, namespace, "my-sandbox", podHas(map[string]string{
				v1beta1.WarmPoolSandboxLabel: "a", v1beta1.SandboxTemplateRefHashLabel: "b", v1beta1.ClaimUIDLabel: "", v1beta1.SandboxNameHashLabel: hashOfMySandbox,
			}, nil))
		}},
		row{id: "spec-stays", rule: "a change of the Pod's spec waits for the next Pod", run: func(t *tester) {
			namespace := newNamespace(t)
			pod := createWithPod(t, namespace, "box", podReady)
			patch(t, namespace, "box", `{"spec":{"podTemplate":{"spec":{"containers":[{"name":"main","image":"example.com/next"}]}}}}`)
			await(t, namespace, "box", ready())
			if now := awaitPod(t, namespace, "box"); now.UID != pod.UID || now.Spec.Containers[0].Image == "example.com/next" {
				t.Errorf("the Pod was changed or replaced: %+v", now.Spec.Containers)
			}
			if err := env.kube.CoreV1().Pods(namespace).Delete(t.Context(), "box", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			awaitPodIs(t, namespace, "box", func(now *corev1.Pod) error {
				if now.UID == pod.UID || now.Spec.Containers[0].Image != "example.com/next" {
					return fmt.Errorf("UID %s, image %s", now.UID, now.Spec.Containers[0].Image)
				}
				return nil
			})
		}},
		row{id: "adopt", rule: "a Pod of the right name that nobody controls is adopted if it is marked adoptable or has the hash", run: func(t *tester) {
			namespace := newNamespace(t)
			for name, labels := range map[string]map[string]string{"marked": {v1beta1.AdoptableLabel: "true"}, "my-sandbox": {v1beta1.SandboxNameHashLabel: hashOfMySandbox}} {
				pod := existing(t, namespace, name, labels, nil)
				patchPod(t, namespace, name, podReady, "status")
				sandbox := create(t, namespace, name)
				await(t, namespace, name, ready())
				adopted := awaitPod(t, namespace, name)
				if adopted.UID != pod.UID {
					t.Errorf("%s: the Pod was replaced", name)
				}
				controlled(t, adopted, sandbox)
			}
		}},
		row{id: "adopt-not", rule: "a Pod of the right name that is not up for adoption is an error, and left alone", run: func(t *tester) {
			namespace := newNamespace(t)
			for name, test := range map[string]struct {
				labels  map[string]string
				owners  []metav1.OwnerReference
				message string
			}{
				"plain":     {nil, nil, "cannot adopt unowned"},
				"almost":    {map[string]string{v1beta1.AdoptableLabel: "True"}, nil, "cannot adopt unowned"},
				"strangers": {map[string]string{v1beta1.AdoptableLabel: "true"}, stranger(t, namespace), "is owned by ConfigMap/"},
			} {
				before := existing(t, namespace, name, test.labels, test.owners)
				create(t, namespace, name)
				sandbox := await(t, namespace, name, all(notReady(v1beta1.SandboxReasonReconcilerError, "Error seen: "), notReady("", test.message),
					conditions(condition{v1beta1.SandboxConditionSuspended, metav1.ConditionFalse, v1beta1.SandboxReasonNotSuspended, ""},
						condition{v1beta1.SandboxConditionPodScheduled, metav1.ConditionUnknown, v1beta1.SandboxReasonPodSchedulingUnknown, ""},
						condition{kind: v1beta1.SandboxConditionFinished, status: absent})))
				if len(sandbox.Status.PodIPs) != 0 || sandbox.Status.NodeName != "" {
					t.Errorf("%s: addresses of a stranger's Pod are published: %+v", name, sandbox.Status)
				}
				if diff := cmp.Diff(before, awaitPod(t, namespace, name)); diff != "" {
					t.Errorf("%s: the Pod changed (-before +after):\n%s", name, diff)
				}
			}
		}},
		row{id: "pod-name-hint", rule: "the annotation pod-name leads to an adoptable Pod of another name, and to no Pod of somebody else", run: func(t *tester) {
			namespace := newNamespace(t)
			hint := func(name string) func(*v1beta1.Sandbox) {
				return func(s *v1beta1.Sandbox) { s.Annotations = map[string]string{v1beta1.SandboxPodNameAnnotation: name} }
			}
			existing(t, namespace, "legacy", map[string]string{v1beta1.AdoptableLabel: "true"}, nil)
			patchPod(t, namespace, "legacy", podReady, "status")
			sandbox := create(t, namespace, "box", hint("legacy"))
			await(t, namespace, "box", ready())
			controlled(t, awaitPod(t, namespace, "legacy"), sandbox)

			victim := existing(t, namespace, "victim", nil, stranger(t, namespace))
			create(t, namespace, "thief", hint("victim"), unscheduled)
			await(t, namespace, "thief", notReady("", ""))
			if now := awaitPod(t, namespace, "victim"); now.UID != victim.UID || now.DeletionTimestamp != nil || !cmp.Equal(now.OwnerReferences, victim.OwnerReferences) {
				t.Errorf("the Pod of somebody else changed: %+v", now.ObjectMeta)
			}
		}},
		row{id: "terminal-pod-stays", rule: "a Pod that ended is not replaced until somebody deletes it", run: func(t *tester) {
			namespace := newNamespace(t)
			pod := createWithPod(t, namespace, "box", podSucceeded)
			finished := condition{v1beta1.SandboxConditionFinished, metav1.ConditionTrue, v1beta1.SandboxReasonPodSucceeded, "Pod completed successfully"}
			await(t, namespace, "box", conditions(finished))
			consistently(t, "the Pod that ended", calm, func(ctx context.Context) error {
				now, err := env.kube.CoreV1().Pods(namespace).Get(ctx, "box", metav1.GetOptions{})
				if err == nil && now.UID != pod.UID {
					err = errors.New("it was replaced")
				}
				return err
			})
			if err := env.kube.CoreV1().Pods(namespace).Delete(t.Context(), "box", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			awaitPodIs(t, namespace, "box", func(now *corev1.Pod) error {
				if now.UID == pod.UID {
					return errors.New("it is the same Pod")
				}
				return nil
			})
			await(t, namespace, "box", conditions(condition{kind: v1beta1.SandboxConditionFinished, status: absent}))
		}},
	)
}

// TestVolumeClaims has the rules of volumeClaimTemplates.
func TestVolumeClaims(t *testing.T) {
	withData := func(metadata v1beta1.EmbeddedObjectMetadata) func(*v1beta1.Sandbox) {
		return func(sandbox *v1beta1.Sandbox) {
			framework.WithVolume("data")(sandbox)
			sandbox.Spec.VolumeClaimTemplates[0].Metadata = metadata
		}
	}
	runRows(t,
		row{id: "made", rule: "a claim is <template>-<sandbox>, with the template's spec, labels and annotations, the hash, and the Sandbox as controller", run: func(t *tester) {
			namespace := newNamespace(t)
			sandbox := create(t, namespace, "my-sandbox", unscheduled, withData(v1beta1.EmbeddedObjectMetadata{
				Name: "data", Labels: map[string]string{"a": "1", v1beta1.SandboxNameHashLabel: "forged"}, Annotations: map[string]string{"n": "2", v1beta1.PropagatedLabelsAnnotation: "kept"},
			}))
			awaitPod(t, namespace, "my-sandbox")
			got := claim(t, namespace, "data-my-sandbox")
			if got == nil {
				t.Fatal("there is no claim")
			}
			controlled(t, got, sandbox)
			if diff := cmp.Diff(map[string]string{"a": "1", v1beta1.SandboxNameHashLabel: hashOfMySandbox}, got.Labels); diff != "" {
				t.Errorf("labels (-want +got):\n%s", diff)
			}
			if got.Annotations["n"] != "2" || got.Annotations[v1beta1.PropagatedLabelsAnnotation] != "kept" || got.Spec.Resources.Requests.Storage().String() != "16Mi" {
				t.Errorf("annotations %v, spec %+v", got.Annotations, got.Spec)
			}
		}},
		row{id: "existing", rule: "a claim that is there is adopted by its label, refused without it, and never changed otherwise", run: func(t *tester) {
			namespace := newNamespace(t)
			makeClaim := func(name string, labels map[string]string, owners []metav1.OwnerReference) *corev1.PersistentVolumeClaim {
				sandbox := framework.NewSandbox("x", framework.WithVolume("data"))
				got, err := env.kube.CoreV1().PersistentVolumeClaims(namespace).Create(t.Context(), &corev1.PersistentVolumeClaim{
					ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, OwnerReferences: owners}, Spec: sandbox.Spec.VolumeClaimTemplates[0].Spec,
				}, metav1.CreateOptions{})
				if err != nil {
					t.Fatal(err)
				}
				return got
			}
			for name, labels := range map[string]map[string]string{"marked": {v1beta1.AdoptableLabel: "true"}, "my-sandbox": {v1beta1.SandboxNameHashLabel: hashOfMySandbox}} {
				before := makeClaim("data-"+name, labels, nil)
				sandbox := create(t, namespace, name, unscheduled, framework.WithVolume("data"))
				eventually(t, "adoption of the claim of "+name, func(context.Context) error {
					if len(claim(t, namespace, "data-"+name).OwnerReferences) == 0 {
						return errors.New("it has no owner")
					}
					return nil
				})
				after := claim(t, namespace, "data-"+name)
				controlled(t, after, sandbox)
				for key, value := range before.Labels {
					if after.Labels[key] != value {
						t.Errorf("%s: labels are %v, were %v", name, after.Labels, before.Labels)
					}
				}
				if after.UID != before.UID || !cmp.Equal(before.Spec.Resources, after.Spec.Resources) {
					t.Errorf("%s: the claim was changed or replaced: %+v", name, after)
				}
			}
			for name, test := range map[string]struct {
				owners  []metav1.OwnerReference
				message string
			}{"plain": {nil, "cannot adopt unowned"}, "strangers": {stranger(t, namespace), "is owned by ConfigMap/"}} {
				makeClaim("data-"+name, nil, test.owners)
				create(t, namespace, name, unscheduled, framework.WithVolume("data"), framework.WithVolume("second"))
				await(t, namespace, name, all(notReady(v1beta1.SandboxReasonReconcilerError, test.message)))
				if claim(t, namespace, "second-"+name) != nil {
					t.Errorf("%s: the claim after the one in error was made", name)
				}
				awaitPod(t, namespace, name)
			}
		}},
		row{id: "outlive-suspension", rule: "claims outlive suspension and expiry with Retain", run: func(t *tester) {
			namespace := newNamespace(t)
			createWithPod(t, namespace, "box", podReady, framework.WithVolume("data"))
			before := claim(t, namespace, "data-box")
			suspend(t, namespace, "box")
			await(t, namespace, "box", suspended())
			patch(t, namespace, "box", `{"spec":{"shutdownTime":"2020-01-01T00:00:00Z"}}`)
			await(t, namespace, "box", notReady(v1beta1.SandboxReasonExpired, ""))
			if after := claim(t, namespace, "data-box"); before == nil || after == nil || after.UID != before.UID || after.DeletionTimestamp != nil {
				t.Errorf("before %+v, after %+v", before, after)
			}
		}},
	)
}
