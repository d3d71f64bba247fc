// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package validation_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/install"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/v1beta1"
	"github.com/sandbox-apiserver/sandbox-apiserver/pkg/apis/extensions/validation"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/apigroup"
)

var group = apigroup.Group{Install: install.Install, Internal: extensions.SchemeGroupVersion, Served: v1beta1.SchemeGroupVersion, Testdata: "../v1beta1/testdata"}

// validationOf returns the validation of a kind. Its functions are for that kind alone.
func validationOf[T runtime.Object](create func(T) field.ErrorList, updates ...func(obj, old T) field.ErrorList) *apigroup.Validation {
	v := &apigroup.Validation{
		Create:  func(obj runtime.Object) field.ErrorList { return create(obj.(T)) },
		Updates: map[string]func(obj, old runtime.Object) field.ErrorList{},
	}
	for i, update := range updates {
		v.Updates[[]string{"the object", "its status"}[i]] = func(obj, old runtime.Object) field.ErrorList { return update(obj.(T), old.(T)) }
	}
	return v
}

func FuzzValidate(f *testing.F) {
	group.FuzzValidation(f, func(obj runtime.Object) *apigroup.Validation {
		switch obj.(type) {
		case *extensions.SandboxTemplate:
			return validationOf(validation.ValidateSandboxTemplate, validation.ValidateSandboxTemplateUpdate)
		case *extensions.SandboxWarmPool:
			return validationOf(validation.ValidateSandboxWarmPool, validation.ValidateSandboxWarmPoolUpdate, validation.ValidateSandboxWarmPoolStatusUpdate)
		case *extensions.SandboxClaim:
			return validationOf(validation.ValidateSandboxClaim, validation.ValidateSandboxClaimUpdate, validation.ValidateSandboxClaimStatusUpdate)
		default:
			return nil
		}
	})
}
