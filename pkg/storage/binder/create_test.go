// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package binder_test

import (
	"context"
	"maps"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents"
	agentsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/agents/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/naming"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/claimtest"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/registrytest"

	corev1 "k8s.io/api/core/v1"
)

func TestClaimIsBoundInTheRequestThatCreatesIt(t *testing.T) {
	s := claimtest.Start(t, registrytest.StartEtcd(t))
	s.AddPoolOf("pool", 1)
	before := s.Sandbox("pool-00000")

	claim := claimtest.Claim("claim", "pool")
	claim.Labels = map[string]string{agentsv1beta1.CreatedByLabel: "go-client"}
	claim.Spec.AdditionalPodMetadata.Labels = map[string]string{"sandbox.users.io/a": "b"}
	got := s.MustCreate(claim)

	want := extensions.SandboxClaimStatus{
		Conditions: []metav1.Condition{{
			Type: "Ready", Status: metav1.ConditionTrue, Reason: "DependenciesReady", Message: "Pod is Ready", ObservedGeneration: 1,
			LastTransitionTime: before.Status.Conditions[0].LastTransitionTime,
		}},
		Sandbox: extensions.ClaimedSandboxStatus{Name: "pool-00000", PodIPs: []string{"10.0.0.1"}, ServiceFQDN: "member.test.svc.cluster.local"},
	}
	if diff := cmp.Diff(want, got.Status); diff != "" {
		t.Errorf("status in the response (-want +got):\n%s", diff)
	}
	annotations := map[string]string{
		extensionsv1beta1.SandboxNameAnnotation:               "pool-00000",
		extensionsv1beta1.ControllerFirstObservedAtAnnotation: s.Clock.Now().UTC().Format(time.RFC3339Nano),
	}
	if diff := cmp.Diff(annotations, got.Annotations); diff != "" {
		t.Errorf("annotations in the response (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(s.Claim("claim"), got); diff != "" {
		t.Errorf("the response is not what was stored (-stored +response):\n%s", diff)
	}
	identity := map[string]string{
		agentsv1beta1.ClaimUIDLabel:               string(got.UID),
		agentsv1beta1.CreatedByLabel:              "go-client",
		agentsv1beta1.SandboxTemplateRefHashLabel: naming.Hash("pool"),
	}
	after := before.DeepCopy()
	after.ResourceVersion = got.ResourceVersion
	after.Generation++
	after.Status.Conditions[0].ObservedGeneration = after.Generation
	after.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(got, extensionsv1beta1.SchemeGroupVersion.WithKind("SandboxClaim"))}
	after.Labels = with(identity, agentsv1beta1.LaunchTypeLabel, agentsv1beta1.LaunchTypeWarm)
	after.Spec.PodTemplate.Metadata = agents.PodMetadata{Labels: with(identity, "app", "agent", "sandbox.users.io/a", "b")}
	if diff := cmp.Diff(after, s.Sandbox("pool-00000")); diff != "" {
		t.Errorf("the Sandbox (-want +got):\n%s", diff)
	}
}

// with returns a copy of a map that also has the given keys and values.
func with(m map[string]string, pairs ...string) map[string]string {
	copied := maps.Clone(m)
	for i := 0; i < len(pairs); i += 2 {
		copied[pairs[i]] = pairs[i+1]
	}
	return copied
}

// TestClaimsThatAreNotBoundAtOnce creates claims that must not get the one member there is. They are stored as they are, and wait.
func TestClaimsThatAreNotBoundAtOnce(t *testing.T) {
	s := claimtest.Start(t, registrytest.StartEtcd(t))
	s.AddPoolOf("pool", 1)
	before := s.Sandbox("pool-00000")
	past, future := metav1.NewTime(time.Now().Add(-time.Hour)), metav1.NewTime(time.Now().Add(time.Hour))
	volume := agents.PersistentVolumeClaimTemplate{
		Metadata: agents.EmbeddedObjectMetadata{Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
	template := claimtest.Template("lenient")
	template.Spec.EnvVarsInjectionPolicy = extensions.EnvVarsInjectionPolicyAllowed
	template.Spec.VolumeClaimTemplatesPolicy = extensions.VolumeClaimTemplatesPolicyAllowed
	s.AddTemplate(template)
	lenient := s.AddPool(claimtest.Pool("lenient", "lenient"))
	s.AddMember(claimtest.Member(lenient, 0), claimtest.ReadyStatus())
	s.AwaitCandidates("lenient", 1)

	for name, claim := range map[string]func(*extensions.SandboxClaim){
		"a pool that does not exist": func(c *extensions.SandboxClaim) { c.Spec.WarmPoolRef.Name = "none" },
		"env":                        func(c *extensions.SandboxClaim) { c.Spec.Env = []extensions.EnvVar{{Name: "A", Value: "b"}} },
		"volumes": func(c *extensions.SandboxClaim) {
			c.Spec.VolumeClaimTemplates = []agents.PersistentVolumeClaimTemplate{volume}
		},
		"a time that has passed": func(c *extensions.SandboxClaim) {
			c.Spec.Lifecycle = &extensions.Lifecycle{ShutdownTime: &past, ShutdownPolicy: "Retain"}
		},
		"a pool of another namespace": func(c *extensions.SandboxClaim) { c.Spec.WarmPoolRef.Name = "elsewhere" },
	} {
		t.Run(name, func(t *testing.T) {
			waiting := claimtest.Claim("", "lenient")
			waiting.GenerateName = "claim-"
			claim(waiting)
			got := s.MustCreate(waiting)
			if diff := cmp.Diff(extensions.SandboxClaimStatus{}, got.Status); diff != "" {
				t.Errorf("status in the response (-want +got):\n%s", diff)
			}
			if len(got.Annotations) != 0 {
				t.Errorf("annotations in the response are %v, want none", got.Annotations)
			}
		})
	}
	if diff := cmp.Diff(before, s.Sandbox("pool-00000")); diff != "" {
		t.Errorf("a member was given away (-before +after):\n%s", diff)
	}
	later := claimtest.Claim("later", "lenient")
	later.Spec.Lifecycle = &extensions.Lifecycle{ShutdownTime: &future, ShutdownPolicy: "Retain"}
	if got := s.MustCreate(later); got.Status.Sandbox.Name != "lenient-00000" {
		t.Errorf("a claim whose time has not passed got %q, want lenient-00000", got.Status.Sandbox.Name)
	}
}

// TestMembersThatAreNotGiven has one member that can be given, W11 among them, and claims all there is.
func TestMembersThatAreNotGiven(t *testing.T) {
	s := claimtest.Start(t, registrytest.StartEtcd(t))
	pool := s.AddPoolOf("pool", 1)
	other := s.AddPool(claimtest.Pool("other", "pool"))
	predecessor := pool.DeepCopy()
	predecessor.UID = "predecessor"
	status := claimtest.ReadyStatus()
	for _, member := range []struct {
		sandbox *agents.Sandbox
		status  func(*agents.SandboxStatus)
	}{
		{sandbox: claimtest.Member(pool, 1), status: func(s *agents.SandboxStatus) { s.PodIPs = nil }},
		{sandbox: claimtest.Member(pool, 2), status: func(s *agents.SandboxStatus) { s.Conditions[0].Status = metav1.ConditionFalse }},
		{sandbox: claimtest.Member(pool, 3), status: func(s *agents.SandboxStatus) { s.Conditions = nil }},
		{sandbox: changed(claimtest.Member(pool, 4), func(s *agents.Sandbox) { s.Spec.OperatingMode = agents.SandboxOperatingModeSuspended })},
		{sandbox: changed(claimtest.Member(pool, 5), func(s *agents.Sandbox) {
			s.Annotations = map[string]string{extensionsv1beta1.ReservedForClaimAnnotation: "other"}
		})},
		{sandbox: changed(claimtest.Member(pool, 6), func(s *agents.Sandbox) { s.Labels[agentsv1beta1.ClaimUIDLabel] = "other" })},
		{sandbox: changed(claimtest.Member(pool, 7), func(s *agents.Sandbox) { s.OwnerReferences = nil })},
		{sandbox: changed(claimtest.Member(other, 8), func(*agents.Sandbox) {})},
		{sandbox: changed(claimtest.Member(predecessor, 9), func(*agents.Sandbox) {})},
		{sandbox: changed(claimtest.Member(pool, 10), func(s *agents.Sandbox) { delete(s.Labels, agentsv1beta1.WarmPoolSandboxLabel) })},
	} {
		status := *status.DeepCopy()
		if member.status != nil {
			member.status(&status)
		}
		s.AddMember(member.sandbox, status)
	}
	deleting := changed(claimtest.Member(pool, 11), func(s *agents.Sandbox) { s.Finalizers = []string{"example.com/kept"} })
	s.AddMember(deleting, status)
	s.Delete(s.Sandboxes, deleting.Name)
	s.AddMember(claimtest.Member(pool, 12), claimtest.ReadyStatus())
	// The last one is known, hence all others are. That of the former pool counts as a candidate until it is looked at.
	s.AwaitCandidates("pool", 3)

	for _, want := range []bool{true, true, false, false} {
		claim := claimtest.Claim("", "pool")
		claim.GenerateName = "claim-"
		got := s.MustCreate(claim).Status.Sandbox.Name
		if bound := got == "pool-00000" || got == "pool-00012"; bound != want || !bound && got != "" {
			t.Errorf("a claim got %q", got)
		}
	}
}

func changed(sandbox *agents.Sandbox, change func(*agents.Sandbox)) *agents.Sandbox {
	change(sandbox)
	return sandbox
}

func TestDryRunGivesNothing(t *testing.T) {
	s := claimtest.Start(t, registrytest.StartEtcd(t))
	s.AddPoolOf("pool", 1)
	before := s.Sandbox("pool-00000")
	if _, err := s.Create(t.Context(), claimtest.Claim("claim", "pool"), &metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, s.Sandbox("pool-00000")); diff != "" {
		t.Errorf("the member changed (-before +after):\n%s", diff)
	}
	if got := s.Candidates("pool"); got != 1 {
		t.Errorf("%d candidates are left, want 1", got)
	}
}

// TestC14DuplicateTakesNothing sends a claim twice, as a client does that got no answer.
func TestC14DuplicateTakesNothing(t *testing.T) {
	s := claimtest.Start(t, registrytest.StartEtcd(t))
	s.AddPoolOf("pool", 2)
	first := s.MustCreate(claimtest.Claim("claim", "pool"))
	_, err := s.Create(t.Context(), claimtest.Claim("claim", "pool"), &metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		t.Errorf("the second request fails with %v, want AlreadyExists", err)
	}
	if diff := cmp.Diff(first, s.Claim("claim")); diff != "" {
		t.Errorf("the claim changed (-first +now):\n%s", diff)
	}
	if got := s.Candidates("pool"); got != 1 {
		t.Errorf("%d candidates are left, want 1", got)
	}
	if got := s.MustCreate(claimtest.Claim("other", "pool")); got.Status.Sandbox.Name == "" || got.Status.Sandbox.Name == first.Status.Sandbox.Name {
		t.Errorf("another claim got %q after %q", got.Status.Sandbox.Name, first.Status.Sandbox.Name)
	}
}

// generator generates the given names, one after the other.
type generator struct {
	rest.RESTCreateStrategy
	names []string
}

var _ names.NameGenerator = &generator{}

func (g *generator) GenerateName(string) string {
	name := g.names[0]
	g.names = g.names[1:]
	return name
}

func TestGeneratedNameThatIsTakenTakesNothing(t *testing.T) {
	s := claimtest.Start(t, registrytest.StartEtcd(t))
	s.AddPoolOf("pool", 2)
	s.MustCreate(claimtest.Claim("claim-1", "pool"))
	s.Claims.Store.CreateStrategy = &generator{s.Claims.Store.CreateStrategy, []string{"claim-1", "claim-1", "claim-2"}}
	claim := claimtest.Claim("", "pool")
	claim.GenerateName = "claim-"
	if got := s.MustCreate(claim); got.Name != "claim-2" || got.Status.Sandbox.Name == "" {
		t.Errorf("claim %s got %q, want claim-2 to have a Sandbox", got.Name, got.Status.Sandbox.Name)
	}
	if got := s.Candidates("pool"); got != 0 {
		t.Errorf("%d candidates are left, want none", got)
	}
}

func TestRefusedClaimTakesNothing(t *testing.T) {
	s := claimtest.Start(t, registrytest.StartEtcd(t))
	s.AddPoolOf("pool", 1)
	refuse := func(context.Context, runtime.Object) error {
		return apierrors.NewForbidden(extensions.Resource("sandboxclaims"), "claim", nil)
	}
	_, err := s.Claims.Create(claimtest.Context(t.Context()), claimtest.Claim("claim", "pool"), refuse, &metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("error is %v, want Forbidden", err)
	}
	if got := s.Candidates("pool"); got != 1 {
		t.Errorf("%d candidates are left, want 1", got)
	}
}

// TestBindingIsOneTransaction counts what 20 claims cost: a revision each, and no other request of the binder.
func TestBindingIsOneTransaction(t *testing.T) {
	s := claimtest.Start(t, registrytest.StartEtcd(t))
	s.AddPoolOf("pool", 20)
	requests := intercept(s)
	last := int64(0)
	for i := range 20 {
		claim := s.MustCreate(claimtest.Claim("claim-"+strconv.Itoa(i), "pool"))
		revision, err := strconv.ParseInt(claim.ResourceVersion, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if last != 0 && revision != last+1 {
			t.Errorf("claim %d is of revision %d after %d", i, revision, last)
		}
		last = revision
	}
	if writes, reads := requests.counts(); writes != 20 || reads != 0 {
		t.Errorf("the binder made %d transactions and %d reads, want 20 and 0", writes, reads)
	}
}

func TestServerSideApplyBinds(t *testing.T) {
	s := claimtest.Start(t, registrytest.StartEtcd(t))
	s.AddPoolOf("pool", 1)
	apply := func() (*extensions.SandboxClaim, bool) {
		t.Helper()
		// This is how the handler of PATCH creates what does not exist.
		obj, created, err := s.Claims.Update(claimtest.Context(t.Context()), "claim", rest.DefaultUpdatedObjectInfo(nil,
			func(_ context.Context, _, old runtime.Object) (runtime.Object, error) {
				claim := old.DeepCopyObject().(*extensions.SandboxClaim)
				if claim.Name == "" {
					claim = claimtest.Claim("claim", "pool")
				}
				return claim, nil
			}), rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, true, &metav1.UpdateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return obj.(*extensions.SandboxClaim), created
	}
	first, created := apply()
	if !created || first.Status.Sandbox.Name != "pool-00000" {
		t.Errorf("applied a claim: created %v, Sandbox %q, want true and pool-00000", created, first.Status.Sandbox.Name)
	}
	again, created := apply()
	if diff := cmp.Diff(first, again); diff != "" || created {
		t.Errorf("applied again: created %v, claim (-first +again):\n%s", created, diff)
	}
}

// TestUnchangedBoundObjectsStayAsTheyAre proves that what was bound is encoded as the stores encode: they would rewrite it otherwise.
func TestUnchangedBoundObjectsStayAsTheyAre(t *testing.T) {
	s := claimtest.Start(t, registrytest.StartEtcd(t))
	s.AddPoolOf("pool", 1)
	claim := s.MustCreate(claimtest.Claim("claim", "pool"))
	if got := s.UpdateClaim(claim.DeepCopy()); got.ResourceVersion != claim.ResourceVersion {
		t.Errorf("an update without changes moved the claim from resourceVersion %s to %s", claim.ResourceVersion, got.ResourceVersion)
	}
	sandbox := s.Sandbox("pool-00000")
	if got := s.UpdateSandbox(sandbox.DeepCopy()); got.ResourceVersion != sandbox.ResourceVersion {
		t.Errorf("an update without changes moved the Sandbox from resourceVersion %s to %s", sandbox.ResourceVersion, got.ResourceVersion)
	}
}
