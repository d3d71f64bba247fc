// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/framework"
)

// poolConditions is why the conditions of a pool are promised here alone.
const poolConditions = "pools have no conditions there"

// TestW1NeverMoreThanAskedFor: a pool is filled once, however many events its own members cause.
func TestW1NeverMoreThanAskedFor(t *testing.T) {
	runRows(t,
		row{id: "filling", rule: "while a pool is filled there are at no moment more members than replicas", run: func(t *tester) {
			namespace := newNamespace(t)
			seen := history(t, namespace)
			pool := fillPool(t, namespace, 40)
			if most := mostAtOnce(seen(), pool.UID); most != 40 {
				t.Errorf("there were %d members at once, want 40", most)
			}
		}},
		row{id: "claiming", rule: "nor while its members are claimed", run: func(t *tester) {
			namespace := newNamespace(t)
			seen := history(t, namespace)
			pool := fillPool(t, namespace, 10)
			for i := range 10 {
				createClaim(t, namespace, fmt.Sprintf("c%d", i))
			}
			for i := range 10 {
				awaitClaim(t, namespace, fmt.Sprintf("c%d", i), claimReady)
			}
			awaitPool(t, namespace, "p1", 10, 10)
			if most := mostAtOnce(seen(), pool.UID); most != 10 {
				t.Errorf("there were %d members at once, want 10", most)
			}
		}},
	)
}

// TestW2ScalingDown: what goes is idle; what is claimed stays.
func TestW2ScalingDown(t *testing.T) {
	runRows(t,
		row{id: "to-zero", rule: "idle members go, to none at all, and the claimed ones stay", run: func(t *tester) {
			namespace := newNamespace(t)
			pool := fillPool(t, namespace, 5)
			claimed := sets.New(sandboxOf(t, bind(t, namespace, "c1")).UID, sandboxOf(t, bind(t, namespace, "c2")).UID)
			for _, replicas := range []int32{1, 0} {
				patchPool(t, namespace, "p1", fmt.Sprintf(`{"spec":{"replicas":%d}}`, replicas))
				awaitPool(t, namespace, "p1", replicas, replicas)
				if got := len(membersOf(t, pool)); got != int(replicas) {
					t.Errorf("%d members are left of %d", got, replicas)
				}
			}
			list, err := sandboxes(namespace).List(t.Context(), metav1.ListOptions{})
			if err != nil || !uids(list.Items).Equal(claimed) {
				t.Errorf("%v, left are %v, want %v", err, uids(list.Items), claimed)
			}
			for _, name := range []string{"c1", "c2"} {
				awaitClaim(t, namespace, name, claimReady)
			}
		}},
		row{id: "not-ready-first", rule: "those that are not ready go first", run: func(t *tester) {
			namespace := newNamespace(t)
			members := unfilledPool(t, namespace, 3)
			patchPod(t, namespace, members[1].Name, podReady, "status")
			pool := awaitPool(t, namespace, "p1", 3, 1)
			patchPool(t, namespace, "p1", `{"spec":{"replicas":1}}`)
			awaitPool(t, namespace, "p1", 1, 1)
			stays(t, pool, sets.New(members[1].UID))
		}},
		row{id: "zero-is-absent", rule: "counts of zero are absent from the status", run: func(t *tester) {
			namespace := newNamespace(t)
			idlePool(t, namespace)
			awaitPool(t, namespace, "p1", 0, 0)
			status, _ := raw(t, env.agents.ExtensionsV1beta1().RESTClient().Get().Namespace(namespace).Resource("sandboxwarmpools").Name("p1").Do(t.Context()))["status"].(map[string]any)
			for _, key := range []string{"replicas", "readyReplicas"} {
				if value, set := status[key]; set {
					t.Errorf("%s is %v", key, value)
				}
			}
		}},
		row{id: "default", rule: "replicas defaults to 1", run: func(t *tester) {
			namespace := newNamespace(t)
			createTemplate(t, namespace, "t1")
			pool := createPool(t, namespace, "p1", 7, func(p *extensionsv1beta1.SandboxWarmPool) { p.Spec.Replicas = nil })
			if pool.Spec.Replicas == nil || *pool.Spec.Replicas != 1 {
				t.Errorf("replicas is %v", pool.Spec.Replicas)
			}
			awaitPool(t, namespace, "p1", 1, 1)
		}},
	)
}

// TestW3Scale: whatever scales other kinds scales a pool.
func TestW3Scale(t *testing.T) {
	scale := func(t *tester, namespace string) *autoscalingv1.Scale {
		t.Helper()
		scale, err := pools(namespace).GetScale(t.Context(), "p1", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return scale
	}
	runRows(t,
		row{id: "kubectl", rule: "kubectl scale does, and refuses if the number is not the one it was told", run: func(t *tester) {
			namespace := newNamespace(t)
			fillPool(t, namespace, 1)
			mustKubectl(t, namespace, "", "scale", "sandboxwarmpool/p1", "--replicas=3")
			awaitPool(t, namespace, "p1", 3, 3)
			if got := kubectl(t, namespace, "", "scale", "swp/p1", "--replicas=1", "--current-replicas=2"); got.Code == 0 || !strings.Contains(got.Stderr, "Expected replicas to be 2") {
				t.Errorf("got %+v", got)
			}
			mustKubectl(t, namespace, "", "scale", "swp/p1", "--replicas=2", "--current-replicas=3")
			awaitPool(t, namespace, "p1", 2, 2)
		}},
		row{id: "get", rule: "scale has the replicas of spec and status, and a selector that finds the Pods", run: func(t *tester) {
			namespace := newNamespace(t)
			fillPool(t, namespace, 2)
			patchPool(t, namespace, "p1", `{"spec":{"replicas":3}}`)
			awaitPool(t, namespace, "p1", 3, 3)
			got := scale(t, namespace)
			if got.Spec.Replicas != 3 || got.Status.Replicas != 3 {
				t.Errorf("got %+v", got)
			}
			list, err := env.kube.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: got.Status.Selector})
			if err != nil || got.Status.Selector == "" || len(list.Items) != 3 {
				t.Errorf("%v, %q selects %d Pods", err, got.Status.Selector, len(list.Items))
			}
		}},
		row{id: "update", rule: "an autoscaler's update sets the replicas; with a version that is old it is a Conflict", run: func(t *tester) {
			namespace := newNamespace(t)
			fillPool(t, namespace, 1)
			old := scale(t, namespace)
			want := old.DeepCopy()
			want.Spec.Replicas = 2
			if updated, err := pools(namespace).UpdateScale(t.Context(), "p1", want, metav1.UpdateOptions{}); err != nil || updated.Spec.Replicas != 2 {
				t.Fatalf("%v, got %+v", err, updated)
			}
			awaitPool(t, namespace, "p1", 2, 2)
			_, err := pools(namespace).UpdateScale(t.Context(), "p1", want, metav1.UpdateOptions{})
			refused(t, "old version", err, conflict)
			negative := scale(t, namespace)
			negative.Spec.Replicas = -1
			_, err = pools(namespace).UpdateScale(t.Context(), "p1", negative, metav1.UpdateOptions{})
			refused(t, "negative", err, invalid, "spec.replicas")
		}},
		row{id: "patch", rule: "a patch of scale sets the replicas, and zero empties the pool", run: func(t *tester) {
			namespace := newNamespace(t)
			fillPool(t, namespace, 1)
			_, err := pools(namespace).Patch(t.Context(), "p1", types.MergePatchType, []byte(`{"spec":{"replicas":0}}`), metav1.PatchOptions{}, "scale")
			if err != nil {
				t.Fatal(err)
			}
			awaitPool(t, namespace, "p1", 0, 0)
			if got := scale(t, namespace); got.Spec.Replicas != 0 || got.Status.Replicas != 0 || got.Status.Selector == "" {
				t.Errorf("got %+v", got)
			}
		}},
		row{id: "discovery", rule: "discovery says that scale is an autoscaling/v1 Scale", run: func(t *tester) {
			resources, err := env.kube.Discovery().ServerResourcesForGroupVersion(extensionsv1beta1.SchemeGroupVersion.String())
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range resources.APIResources {
				if r.Name == "sandboxwarmpools/scale" && r.Group == "autoscaling" && r.Version == "v1" && r.Kind == "Scale" &&
					sets.New(r.Verbs...).HasAll("get", "patch", "update") {
					return
				}
			}
			t.Errorf("got %+v", resources.APIResources)
		}},
	)
}

// TestW4TemplateComesLaterAndGoes: a pool waits for its template, and does without it while it has what it needs.
func TestW4TemplateComesLaterAndGoes(t *testing.T) {
	runRows(t,
		row{id: "later", rule: "a pool that was there before its template is filled as soon as the template is there", run: func(t *tester) {
			namespace := newNamespace(t)
			createPool(t, namespace, "p1", 2)
			awaitPool(t, namespace, "p1", 0, 0)
			createTemplate(t, namespace, "t1")
			awaitPool(t, namespace, "p1", 2, 2)
		}},
		row{id: "condition", rule: "and says meanwhile what it waits for", beyond: poolConditions, run: func(t *tester) {
			namespace := newNamespace(t)
			createPool(t, namespace, "p1", 2)
			awaitPoolIs(t, namespace, "p1", progressing(metav1.ConditionFalse, extensionsv1beta1.WarmPoolReasonTemplateNotFound, `"t1"`))
			createTemplate(t, namespace, "t1")
			awaitPoolIs(t, namespace, "p1", progressing(metav1.ConditionTrue, extensionsv1beta1.WarmPoolReasonProgressing, ""))
		}},
		row{id: "deleted", rule: "without its template a pool keeps its members, gives them to claims, and makes no more until there is one again", run: func(t *tester) {
			namespace := newNamespace(t)
			pool := fillPool(t, namespace, 2)
			if err := templates(namespace).Delete(t.Context(), "t1", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			before := uids(membersOf(t, pool))
			stays(t, pool, before)
			taken := sandboxOf(t, bind(t, namespace, "c1"))
			stays(t, pool, before.Difference(sets.New(taken.UID)))
			createTemplate(t, namespace, "t1")
			awaitPool(t, namespace, "p1", 2, 2)
		}},
	)
}

// TestW5UnschedulableMembers: members that nobody can run are made once, and each says at once why it is not ready.
func TestW5UnschedulableMembers(t *testing.T) {
	runRows(t, row{id: "held", rule: "as many as asked for, none of them ready, each with the scheduler's reason, and neither Sandbox nor Pod made again", run: func(t *tester) {
		namespace := newNamespace(t)
		seen := history(t, namespace)
		createTemplate(t, namespace, "t1", framework.Blueprint(with(func(s *v1beta1.SandboxSpec) {
			s.PodTemplate.Spec.NodeSelector = map[string]string{"no": "such"}
		})))
		pool := createPool(t, namespace, "p1", 3)
		awaitPool(t, namespace, "p1", 3, 0)
		for _, member := range membersOf(t, pool) {
			await(t, namespace, member.Name, conditions(
				condition{v1beta1.SandboxConditionReady, metav1.ConditionFalse, v1beta1.SandboxReasonDependenciesNotReady, ""},
				condition{v1beta1.SandboxConditionPodScheduled, metav1.ConditionFalse, corev1.PodReasonUnschedulable, "node"},
			))
		}
		before := pods(t, namespace)
		stays(t, pool, uids(membersOf(t, pool)))
		if made := everControlled(seen(), pool.UID); made != 3 {
			t.Errorf("%d members were made", made)
		}
		for _, pod := range before {
			awaitPodIs(t, namespace, pod.Name, func(now *corev1.Pod) error {
				if now.UID != pod.UID {
					return fmt.Errorf("it is %s and was %s", now.UID, pod.UID)
				}
				return nil
			})
		}
	}})
}

// TestW6QuotaStopsTheFill: while a quota is in the way the status is true, and when it is not the pool goes on by itself.
func TestW6QuotaStopsTheFill(t *testing.T) {
	raise := func(t *tester, namespace, resource, hard string) {
		t.Helper()
		patch := fmt.Sprintf(`{"spec":{"hard":{%q:%q}}}`, resource, hard)
		if _, err := env.kube.CoreV1().ResourceQuotas(namespace).Patch(t.Context(), "quota", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	runRows(t,
		row{id: "pods", rule: "a quota on Pods: the members that have one are counted as ready, and the others follow when it is raised", run: func(t *tester) {
			namespace := newNamespace(t)
			quota(t, namespace, "pods", "2")
			createTemplate(t, namespace, "t1")
			createPool(t, namespace, "p1", 3)
			awaitPool(t, namespace, "p1", 3, 2)
			raise(t, namespace, "pods", "10")
			awaitPool(t, namespace, "p1", 3, 3)
		}},
		row{id: "sandboxes", rule: "a quota on Sandboxes: the pool has what it may have, says what is in the way, and goes on when it is raised",
			beyond: "a quota on custom resources is counted, and enforced late; " + poolConditions, run: func(t *tester) {
				const resource = "count/sandboxes.agents.x-k8s.io"
				namespace := newNamespace(t)
				quota(t, namespace, resource, "2")
				awaitCounted(t, namespace, resource)
				createTemplate(t, namespace, "t1")
				createPool(t, namespace, "p1", 5)
				awaitPool(t, namespace, "p1", 2, 2)
				awaitPoolIs(t, namespace, "p1", progressing(metav1.ConditionFalse, extensionsv1beta1.WarmPoolReasonFailedCreate, "exceeded quota"))
				eventually(t, "event", func(context.Context) error {
					for _, event := range eventsAbout(t, namespace, "SandboxWarmPool", "p1") {
						if event.Type == corev1.EventTypeWarning {
							return nil
						}
					}
					return errors.New("there is no warning")
				})
				raise(t, namespace, resource, "10")
				awaitPool(t, namespace, "p1", 5, 5)
				awaitPoolIs(t, namespace, "p1", progressing(metav1.ConditionTrue, extensionsv1beta1.WarmPoolReasonProgressing, ""))
			}},
	)
}

// awaitCounted waits until the use of a resource is counted. Until then nothing is admitted that the quota limits. Discovery of new
// resources takes kube-controller-manager minutes, but any change of a quota has everything counted that it limits.
func awaitCounted(t *tester, namespace, resource string) {
	t.Helper()
	const countPatience = 3 * time.Minute
	pods := 1000
	framework.Eventually(t, countPatience, "use of "+resource, func(ctx context.Context) error {
		pods++
		patch := fmt.Sprintf(`{"spec":{"hard":{"pods":"%d"}}}`, pods)
		quota, err := env.kube.CoreV1().ResourceQuotas(namespace).Patch(ctx, "quota", types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		if err != nil {
			return err
		}
		if _, counted := quota.Status.Used[corev1.ResourceName(resource)]; !counted {
			return fmt.Errorf("used is %+v", quota.Status.Used)
		}
		return nil
	})
}

// TestW7UsedSandboxIsNeverGivenAgain: nobody gets what somebody else had before him.
func TestW7UsedSandboxIsNeverGivenAgain(t *testing.T) {
	runRows(t,
		row{id: "after-deletion", rule: "the next claim after the deletion of one gets another Sandbox", run: func(t *tester) {
			namespace := newNamespace(t)
			fillPool(t, namespace, 1)
			used := sets.New[types.UID]()
			for range 3 {
				sandbox := sandboxOf(t, bind(t, namespace, "c1"))
				if used.Has(sandbox.UID) {
					t.Fatalf("Sandbox %s was used before", sandbox.Name)
				}
				used.Insert(sandbox.UID)
				if err := claims(namespace).Delete(t.Context(), "c1", metav1.DeleteOptions{}); err != nil {
					t.Fatal(err)
				}
				awaitGone(t, "SandboxClaim", claims(namespace).Get, "c1")
			}
			awaitPool(t, namespace, "p1", 1, 1)
		}},
		row{id: "labelled-as-idle", rule: "a claimed Sandbox that is labelled as an idle member is none", run: func(t *tester) {
			namespace := newNamespace(t)
			pool := fillPool(t, namespace, 1)
			hash := membersOf(t, pool)[0].Labels[v1beta1.WarmPoolSandboxLabel]
			used := sandboxOf(t, bind(t, namespace, "c1"))
			patch(t, namespace, used.Name, fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, v1beta1.WarmPoolSandboxLabel, hash))
			awaitPool(t, namespace, "p1", 1, 1)
			if other := sandboxOf(t, bind(t, namespace, "c2")); other.UID == used.UID {
				t.Error("the second claim got the Sandbox of the first")
			}
			awaitClaim(t, namespace, "c1", claimReady)
		}},
		row{id: "orphaned", rule: "nor one that was left over by its claim", beyond: "an orphan that is labelled again goes back to the pool there", run: func(t *tester) {
			namespace := newNamespace(t)
			pool := fillPool(t, namespace, 1)
			hash := membersOf(t, pool)[0].Labels[v1beta1.WarmPoolSandboxLabel]
			used := sandboxOf(t, bind(t, namespace, "c1"))
			awaitGarbageCollector(t, namespace)
			if err := claims(namespace).Delete(t.Context(), "c1", metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationOrphan)}); err != nil {
				t.Fatal(err)
			}
			awaitGone(t, "SandboxClaim", claims(namespace).Get, "c1")
			patch(t, namespace, used.Name, fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, v1beta1.WarmPoolSandboxLabel, hash))
			consistently(t, "orphan", calm, func(context.Context) error {
				if got := get(t, namespace, used.Name); controls(pool.UID, got) {
					return fmt.Errorf("it is a member of the pool: %+v", got.OwnerReferences)
				}
				return nil
			})
		}},
	)
}

// TestW8EditedTemplate: whether idle members follow an edit of their template is a matter of the strategy, and of what was edited.
func TestW8EditedTemplate(t *testing.T) {
	const (
		image  = `{"spec":{"podTemplate":{"spec":{"containers":[{"name":"main","image":"example.com/other:2"}]}}}}`
		labels = `{"metadata":{"labels":{"a":"b"}},"spec":{"podTemplate":{"metadata":{"labels":{"a":"b"},"annotations":{"c":"d"}}}}}`
		volume = `{"spec":{"volumeClaimTemplates":[{"metadata":{"name":"data"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Mi"}}}}]}}`
		policy = `{"spec":{"envVarsInjectionPolicy":"Allowed","networkPolicyManagement":"Unmanaged"}}`
	)
	rows := []row{{id: "on-replenish", rule: "OnReplenish keeps them, and makes new ones by the template as it is", run: func(t *tester) {
		namespace := newNamespace(t)
		pool := fillPool(t, namespace, 2)
		patchTemplate(t, namespace, "t1", image)
		before := uids(membersOf(t, pool))
		stays(t, pool, before)
		taken := sandboxOf(t, bind(t, namespace, "c1"))
		if got := taken.Spec.PodTemplate.Spec.Containers[0].Image; got != framework.Image {
			t.Errorf("the idle member has the image %s", got)
		}
		awaitPool(t, namespace, "p1", 2, 2)
		for _, member := range membersOf(t, pool) {
			if image := member.Spec.PodTemplate.Spec.Containers[0].Image; (image == framework.Image) != before.Has(member.UID) {
				t.Errorf("member %s, there before: %v, has the image %s", member.Name, before.Has(member.UID), image)
			}
		}
	}}}
	for id, test := range map[string]struct {
		patch    string
		replaced bool
	}{
		"recreate-image":   {image, true},
		"recreate-volume":  {volume, true},
		"recreate-service": {`{"spec":{"service":true}}`, true},
		"recreate-labels":  {labels, false},
		"recreate-policy":  {policy, false},
	} {
		rule := "Recreate replaces idle members that the edit would have made otherwise"
		if !test.replaced {
			rule = "Recreate replaces none for what is no matter of their Pods' specs, volumes or Service"
		}
		rows = append(rows, row{id: id, rule: rule, run: func(t *tester) {
			namespace := newNamespace(t)
			createTemplate(t, namespace, "t1")
			pool := createPool(t, namespace, "p1", 2, framework.Recreate)
			awaitPool(t, namespace, "p1", 2, 2)
			before := uids(membersOf(t, pool))
			patchTemplate(t, namespace, "t1", test.patch)
			if test.replaced {
				awaitOthers(t, pool, before)
			}
			stays(t, pool, uids(membersOf(t, pool)))
			if got := uids(membersOf(t, pool)); got.Equal(before) == test.replaced {
				t.Errorf("before %v, after %v", sets.List(before), sets.List(got))
			}
		}})
	}
	rows = append(rows, row{id: "recreate-claimed", rule: "a claimed Sandbox is never replaced", run: func(t *tester) {
		namespace := newNamespace(t)
		createTemplate(t, namespace, "t1")
		pool := createPool(t, namespace, "p1", 1, framework.Recreate)
		awaitPool(t, namespace, "p1", 1, 1)
		claimed := sandboxOf(t, bind(t, namespace, "c1"))
		awaitPool(t, namespace, "p1", 1, 1)
		before := uids(membersOf(t, pool))
		patchTemplate(t, namespace, "t1", image)
		awaitOthers(t, pool, before)
		if got := get(t, namespace, claimed.Name); got.UID != claimed.UID || got.DeletionTimestamp != nil {
			t.Errorf("before %s, after %+v", claimed.UID, got.ObjectMeta)
		}
	}})
	runRows(t, rows...)
}

// TestW9PoolDeletedOrRepointed: what happens to a pool does not happen to claimed Sandboxes.
func TestW9PoolDeletedOrRepointed(t *testing.T) {
	runRows(t,
		row{id: "deleted", rule: "with a pool go its idle members; claimed Sandboxes stay, and stay ready", run: func(t *tester) {
			namespace := newNamespace(t)
			pool := fillPool(t, namespace, 3)
			claimed := sandboxOf(t, bind(t, namespace, "c1"))
			if err := pools(namespace).Delete(t.Context(), "p1", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			eventually(t, "idle members are gone", func(context.Context) error {
				if members := membersOf(t, pool); len(members) != 0 {
					return fmt.Errorf("%d are left", len(members))
				}
				return nil
			})
			consistently(t, "claim", calm, func(ctx context.Context) error {
				claim, err := claims(namespace).Get(ctx, "c1", metav1.GetOptions{})
				if err != nil {
					return err
				}
				return claimReady(claim)
			})
			if got := get(t, namespace, claimed.Name); got.UID != claimed.UID || got.DeletionTimestamp != nil {
				t.Errorf("before %s, after %+v", claimed.UID, got.ObjectMeta)
			}
		}},
		row{id: "repointed", rule: "under OnReplenish members of the template before stay, and are claimed", run: func(t *tester) {
			namespace := newNamespace(t)
			pool := fillPool(t, namespace, 1)
			createTemplate(t, namespace, "t2")
			before := uids(membersOf(t, pool))
			patchPool(t, namespace, "p1", `{"spec":{"sandboxTemplateRef":{"name":"t2"}}}`)
			stays(t, pool, before)
			if sandbox := sandboxOf(t, bind(t, namespace, "c1")); !before.Has(sandbox.UID) {
				t.Errorf("the claim got %s", sandbox.Name)
			}
		}},
		row{id: "repointed-recreate", rule: "under Recreate they are replaced, and claimed Sandboxes are not", run: func(t *tester) {
			namespace := newNamespace(t)
			createTemplate(t, namespace, "t1")
			createTemplate(t, namespace, "t2", ofTemplate(func(s *extensionsv1beta1.SandboxTemplateSpec) {
				s.PodTemplate.Spec.Containers[0].Image = "example.com/other:2"
			}))
			pool := createPool(t, namespace, "p1", 1, framework.Recreate)
			awaitPool(t, namespace, "p1", 1, 1)
			claimed := sandboxOf(t, bind(t, namespace, "c1"))
			awaitPool(t, namespace, "p1", 1, 1)
			before := uids(membersOf(t, pool))
			patchPool(t, namespace, "p1", `{"spec":{"sandboxTemplateRef":{"name":"t2"}}}`)
			awaitOthers(t, pool, before)
			if got := get(t, namespace, claimed.Name); got.UID != claimed.UID || got.DeletionTimestamp != nil {
				t.Errorf("before %s, after %+v", claimed.UID, got.ObjectMeta)
			}
		}},
	)
}

// TestW10LifetimeBeginsWithTheClaim: how long a Sandbox was warm is nobody's lifetime.
func TestW10LifetimeBeginsWithTheClaim(t *testing.T) {
	runRows(t, row{id: "from-bind", rule: "the deadline is the claim's, and the Sandbox has none of its own", run: func(t *tester) {
		namespace := newNamespace(t)
		fillPool(t, namespace, 1)
		deadline := time.Now().Add(4 * time.Second).Truncate(time.Second)
		claim := bind(t, namespace, "c1", withLifecycle(extensionsv1beta1.Lifecycle{
			ShutdownTime: new(metav1.NewTime(deadline)), ShutdownPolicy: extensionsv1beta1.ClaimShutdownPolicyDelete,
		}))
		sandbox := sandboxOf(t, claim)
		if sandbox.Spec.ShutdownTime != nil {
			t.Errorf("the Sandbox expires at %v", sandbox.Spec.ShutdownTime)
		}
		awaitGone(t, "SandboxClaim", claims(namespace).Get, "c1")
		if now := time.Now(); now.Before(deadline) {
			t.Errorf("the claim went %v before its time", deadline.Sub(now))
		}
		awaitGone(t, "Sandbox", sandboxes(namespace).Get, sandbox.Name)
	}})
}

// TestW11MemberWithoutAddress: nothing is called ready that cannot be reached.
func TestW11MemberWithoutAddress(t *testing.T) {
	runRows(t,
		row{id: "prefers-addresses", rule: "of two members the claim gets the one that has an address", run: func(t *tester) {
			namespace := newNamespace(t)
			members := unfilledPool(t, namespace, 2)
			patchPod(t, namespace, members[0].Name, podReadyWithoutIP, "status")
			patchPod(t, namespace, members[1].Name, podReady, "status")
			awaitPool(t, namespace, "p1", 2, 1)
			claim := bind(t, namespace, "c1")
			if claim.Status.Sandbox.Name != members[1].Name {
				t.Errorf("it got %s, want %s", claim.Status.Sandbox.Name, members[1].Name)
			}
			if got := strings.Join(claim.Status.Sandbox.PodIPs, ","); got != "192.0.2.7,2001:db8::7" {
				t.Errorf("its addresses are %s", got)
			}
		}},
		row{id: "waits", rule: "a claim waits a moment for one that gets its address, and is not ready before", run: func(t *tester) {
			namespace := newNamespace(t)
			members := unfilledPool(t, namespace, 1)
			if claim := createClaim(t, namespace, "c1"); claim.Status.Sandbox.Name != "" {
				t.Errorf("it has %+v", claim.Status)
			}
			patchPod(t, namespace, members[0].Name, podReady, "status")
			if claim := awaitClaim(t, namespace, "c1", claimReady); claim.Status.Sandbox.Name != members[0].Name {
				t.Errorf("it got %s, want %s", claim.Status.Sandbox.Name, members[0].Name)
			}
		}},
		row{id: "cold-after-grace", rule: "after that moment a Sandbox of its own is made", run: func(t *tester) {
			namespace := newNamespace(t)
			unfilledPool(t, namespace, 1)
			createClaim(t, namespace, "c1")
			claim := awaitClaim(t, namespace, "c1", func(c *extensionsv1beta1.SandboxClaim) error {
				if c.Status.Sandbox.Name == "" {
					return fmt.Errorf("status is %+v", c.Status)
				}
				return nil
			})
			launched(t, claim, v1beta1.LaunchTypeCold)
		}},
	)
}

// TestW12PoolsOfOthers: a pool is that of the claim's own namespace, or none.
func TestW12PoolsOfOthers(t *testing.T) {
	runRows(t,
		row{id: "same-name", rule: "a claim on a pool that exists under that name elsewhere finds none, and nothing is taken there", run: func(t *tester) {
			theirs, ours := newNamespace(t), newNamespace(t)
			pool := fillPool(t, theirs, 1)
			before := uids(membersOf(t, pool))
			createClaim(t, ours, "c1")
			awaitClaim(t, ours, "c1", claimNotReady(extensionsv1beta1.ClaimReasonWarmPoolNotFound, `"p1"`))
			stays(t, pool, before)
		}},
		row{id: "label", rule: "a Sandbox that is labelled as a member of a pool and does not belong to it is not given away", run: func(t *tester) {
			namespace := newNamespace(t)
			pool := fillPool(t, namespace, 1)
			member := membersOf(t, pool)[0]
			stranger := createPool(t, namespace, "p2", 1)
			awaitPool(t, namespace, "p2", 1, 1)
			theirs := membersOf(t, stranger)[0]
			patch(t, namespace, theirs.Name, fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, v1beta1.WarmPoolSandboxLabel, member.Labels[v1beta1.WarmPoolSandboxLabel]))
			for _, name := range []string{"c1", "c2"} {
				if got := bind(t, namespace, name).Status.Sandbox.Name; got == theirs.Name {
					t.Errorf("claim %s got %s, which is a member of another pool", name, got)
				}
			}
		}},
	)
}
