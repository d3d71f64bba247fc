// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package sandbox holds the commands of the kubectl plugin `kubectl sandbox`, one file a command. The commands follow kubectl's
// own in flags, output and errors, and are built from its parts; what kubectl does already (get, apply, wait) has no command
// here.
package sandbox
