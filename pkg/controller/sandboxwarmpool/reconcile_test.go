// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxwarmpool

import (
	"testing"
	"time"
)

const progressing = " True/Progressing: Members that are missing are being made"

func TestNewPoolIsFilledWithOneCreateForEachMember(t *testing.T) {
	f := newFixture(t).everywhere(newPool(3), newTemplate())
	if after := f.mustPass(); after != 0 {
		t.Errorf("another pass is due after %v", after)
	}
	f.wantRequests("list sandboxes", "3 x create sandboxes", "patch sandboxwarmpools/status")
	f.wantStatus("0/3" + progressing)
	f.sync()
	f.mustPass()
	f.wantRequests()
	for _, member := range f.sandboxes() {
		f.change(member.Name, becameReady(0))
	}
	f.sync()
	f.clock.Step(time.Second)
	f.mustPass()
	f.wantRequests("patch sandboxwarmpools/status")
	f.wantStatus("3/3" + progressing)
	f.wantEvents()
}
