// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package labeldomains says which prefixes labels of claims may have. The list is the operator's, and kept in a file that server and
// controller both read.
package labeldomains

import "strings"

// List holds the domains that a label's prefix may equal or be under, in lower case.
type List []string

// Default is the list of an operator who has said nothing. Not to be changed.
var Default = List{"sandbox.users.io"}

// Parse reads a list whose entries are separated by commas or line ends. Spaces around an entry and empty entries do not count. It
// returns Default if there is no entry: a list cannot be empty.
func Parse(text string) List {
	var list List
	for entry := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return r == ',' || r == '\n' }) {
		if entry = strings.TrimSpace(entry); entry != "" {
			list = append(list, entry)
		}
	}
	if list == nil {
		return Default
	}
	return list
}

// Allows says whether a label may have the prefix.
func (l List) Allows(prefix string) bool {
	for _, domain := range l {
		if Within(prefix, domain) {
			return true
		}
	}
	return false
}

// String returns the list as a reader of an error should see it.
func (l List) String() string { return strings.Join(l, ", ") }

// Within says whether the prefix is the domain or under it. Domains do not distinguish cases.
func Within(prefix, domain string) bool {
	prefix, domain = strings.ToLower(prefix), strings.ToLower(domain)
	return prefix == domain || strings.HasSuffix(prefix, "."+domain)
}
