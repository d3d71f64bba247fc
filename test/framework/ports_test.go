// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import "testing"

func TestReservedPortsAreNotGivenAgain(t *testing.T) {
	first := map[int]bool{}
	for range 20 {
		port, reservation, err := reservePorts()
		if err != nil {
			t.Fatal(err)
		}
		defer reservation.Close()
		if first[port] || !portsAreFree(port, portsPerCluster) {
			t.Errorf("port %d was given before, or is in use", port)
		}
		first[port] = true
	}
}
