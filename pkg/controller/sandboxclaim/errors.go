// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package sandboxclaim

import "fmt"

// nameTakenError is returned when the name that the Sandbox of a claim must have is that of somebody else's Sandbox. The claim goes on when
// that is gone.
type nameTakenError struct {
	name string
}

func (e *nameTakenError) Error() string {
	return fmt.Sprintf("sandbox %q is not controlled by claim %q. Please use a different claim name or delete the sandbox manually", e.name, e.name)
}
