// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandbox

import "fmt"

// multiplePodsError is returned when a Sandbox controls more than one Pod. Which of them holds the user's work cannot be told, so
// nothing is done until a person has removed the others.
type multiplePodsError struct {
	count int
}

func (e *multiplePodsError) Error() string {
	return fmt.Sprintf("multiple Pods (%d) are controlled by this Sandbox; refusing to choose or create a Pod", e.count)
}
