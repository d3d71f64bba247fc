// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package history judges what a storage held over time: whether each claim got at most one Sandbox and each Sandbox served at most
// one claim, ever, and whether nothing that was promised to a client was lost.
//
// A Record is fed every transaction in order and judges each by itself: what must never happen. When everything has come to rest,
// Unsettled says what of it is not as it must be in the end, CheckAnswers holds what clients were told against the record, and
// CheckWatch what a client saw in a watch. All of them work on the record alone, and do no I/O.
package history
