// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package claimedsandbox

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	extensionsv1beta1 "github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
)

// Rejection says why a claim cannot have a Sandbox. It holds until the claim or the template is changed: repeating helps nothing.
type Rejection struct {
	// Reason is that of the claim's Ready condition.
	Reason string
	// Errs name the fields of the claim. There is at least one.
	Errs field.ErrorList
}

// Error implements error.
func (r *Rejection) Error() string {
	text := r.Errs.ToAggregate().Error()
	if r.Reason == extensionsv1beta1.ClaimReasonInvalidMetadata {
		return "invalid additionalPodMetadata: " + text
	}
	return text
}

// RejectMetadata returns the rejection of a claim for what CheckMetadata found, and nil if that is nothing.
func RejectMetadata(errs field.ErrorList) *Rejection {
	return reject(extensionsv1beta1.ClaimReasonInvalidMetadata, errs)
}

func reject(reason string, errs field.ErrorList) *Rejection {
	if len(errs) == 0 {
		return nil
	}
	return &Rejection{Reason: reason, Errs: errs}
}

// join returns one rejection for all of them: with the reason of the first, and the errors of each. Nil ones do not count.
func join(rejections ...*Rejection) *Rejection {
	var joined *Rejection
	for _, rejection := range rejections {
		switch {
		case rejection == nil:
		case joined == nil:
			joined = &Rejection{Reason: rejection.Reason, Errs: rejection.Errs}
		default:
			joined.Errs = append(joined.Errs, rejection.Errs...)
		}
	}
	return joined
}
