// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
)

// portsPerCluster is at least the number of consecutive ports that localcluster uses for a cluster.
const portsPerCluster = 20

// reservePorts returns the first of as many consecutive TCP ports of the loopback interface as a cluster needs. Nobody listens on
// them, and nobody else gets them from this function until the reservation is closed or the process ends: a cluster begins to
// listen on some of them only when a test starts another program. They lie below those that the system gives to outgoing
// connections.
func reservePorts() (first int, reservation io.Closer, err error) {
	const low, high = 18000, 32000
	for _, block := range rand.Perm((high - low) / portsPerCluster) {
		first := low + block*portsPerCluster
		// An abstract socket goes with the process, and is as private to a network namespace as ports are.
		reservation, err := net.Listen("unix", fmt.Sprintf("@sandbox-apiserver-test-ports-%d", first))
		if err != nil {
			continue
		}
		if portsAreFree(first, portsPerCluster) {
			return first, reservation, nil
		}
		if err := reservation.Close(); err != nil {
			return 0, nil, err
		}
	}
	return 0, nil, fmt.Errorf("no %d consecutive free ports between %d and %d", portsPerCluster, low, high)
}

func portsAreFree(first, n int) bool {
	for port := first; port < first+n; port++ {
		listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			return false
		}
		if err := listener.Close(); err != nil {
			return false
		}
	}
	return true
}
