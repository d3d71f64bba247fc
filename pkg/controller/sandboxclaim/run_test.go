// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxclaim

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
)

// run starts the informers and the workers, and stops them with the test.
func (f *fixture) run() {
	f.T.Helper()
	f.T.Cleanup(f.Start(f.Controller.Run, 4))
	f.AwaitCaches(f.HasSynced)
}

// TestRunFollowsAClaimThroughItsLife goes from a pool that is not there to a Sandbox that is gone, with events only.
func TestRunFollowsAClaimThroughItsLife(t *testing.T) {
	f := newFixtureWithClock(t, clock.RealClock{})
	f.run()
	ctx := t.Context()
	extensions := f.Server.ExtensionsV1beta1()
	claims := extensions.SandboxClaims(testNamespace)
	sandboxes := f.Server.AgentsV1beta1().Sandboxes(testNamespace)
	reason := func(want string) func() bool {
		return func() bool {
			claim, err := claims.Get(ctx, testName, metav1.GetOptions{})
			return err == nil && readyReason(&claim.Status) == want
		}
	}
	if _, err := claims.Create(ctx, testClaim(), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.Eventually("the claim misses its pool", reason(extensionsv1beta1.ClaimReasonWarmPoolNotFound))
	if _, err := extensions.SandboxWarmPools(testNamespace).Create(ctx, testPool(), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.Eventually("the claim misses its template", reason(extensionsv1beta1.ClaimReasonTemplateNotFound))
	if _, err := extensions.SandboxTemplates(testNamespace).Create(ctx, testTemplate(), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var box *sandbox
	f.Eventually("a Sandbox is made", func() bool {
		var err error
		box, err = sandboxes.Get(ctx, testName, metav1.GetOptions{})
		return err == nil
	})
	f.Eventually("the claim says so", reason(extensionsv1beta1.ClaimReasonSandboxCreatePending))
	readied(box)
	box.ResourceVersion = "2000"
	if _, err := sandboxes.UpdateStatus(ctx, box, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.Eventually("the claim is ready and says since when", func() bool {
		claim, err := claims.Get(ctx, testName, metav1.GetOptions{})
		return err == nil && isReady(&claim.Status) && claim.Annotations[extensionsv1beta1.ClaimFirstReadyAtAnnotation] != ""
	})
	if err := sandboxes.Delete(ctx, testName, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.Eventually("the claim misses its Sandbox", reason(extensionsv1beta1.ClaimReasonSandboxMissing))
}
