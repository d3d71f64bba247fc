// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxclaim

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/controller/message"
)

// event is what is to be recorded about a claim.
type event struct {
	eventType, reason, action, note string
}

func adoptedEvent(sandbox string) event {
	return event{corev1.EventTypeNormal, "SandboxAdopted", "Adoption", fmt.Sprintf("Adopted warm pool Sandbox %q", sandbox)}
}

func provisionedEvent(sandbox string) event {
	return event{corev1.EventTypeNormal, "SandboxProvisioned", "Provisioning", fmt.Sprintf("Created Sandbox %q", sandbox)}
}

func expiredEvent() event {
	return event{corev1.EventTypeNormal, extensionsv1beta1.ClaimReasonExpired, "Claim Expired", "Claim expired"}
}

func deletingEvent(policy extensionsv1beta1.ClaimShutdownPolicy) event {
	return event{corev1.EventTypeNormal, extensionsv1beta1.ClaimReasonExpired, "Deleting", fmt.Sprintf("Deleting Claim (ShutdownPolicy=%s)", policy)}
}

// metadataEvent tells that the metadata of the claim's Pod stays as it is. The claim is as usable as before, so its conditions do not.
func metadataEvent(err error) event {
	return event{corev1.EventTypeWarning, "MetadataNotApplied", "MetadataSync", err.Error()}
}

func (c *Controller) record(claim *extensionsv1beta1.SandboxClaim, events ...event) {
	if c.config.DisableEvents {
		return
	}
	for _, event := range events {
		c.config.Recorder.Eventf(claim, nil, event.eventType, event.reason, event.action, "%s", message.Cut(event.note, message.MaxEventNote))
	}
}
