// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package message fits texts into the fields of API objects that have a limit.
package message

import "unicode/utf8"

const (
	// MaxCondition is the longest message, in bytes, that metav1.Condition allows.
	MaxCondition = 32768
	// MaxEventNote is how long, in bytes, the note of an event may be. API servers refuse longer ones.
	MaxEventNote = 1024
)

// Cut returns the text, or what fits into the given number of bytes without breaking a character.
func Cut(text string, size int) string {
	if len(text) <= size {
		return text
	}
	for size > 0 && !utf8.RuneStart(text[size]) {
		size--
	}
	return text[:size]
}
