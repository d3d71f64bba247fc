// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package realcluster runs a Kubernetes cluster with one real node: kubelet,
// containerd and runc in namespaces of their own, the control plane beside it
// on the host.
//
// There is at most one such cluster on a machine, at fixed places, so that it is
// found, whatever checkout started it and however its processes ended. Up keeps
// a cluster that is healthy and was started from the same configuration.
// Anything else is removed and replaced: after processes were killed at
// arbitrary moments, taking up kubelet's, containerd's and CNI's state again is
// not reliable, and a local cluster holds nothing that is worth the attempt.
package realcluster

import (
	"net/netip"
	"path/filepath"
)

// Everything that the cluster has on the machine is named here.
const (
	stateDir = "/var/lib/sandbox-localcluster"
	runDir   = "/run/sandbox-localcluster"
	lockFile = "/run/sandbox-localcluster.lock"

	netnsName = "sandbox-node"
	netnsFile = "/run/netns/" + netnsName
	// mountNS keeps the node's mount namespace.
	mountNS  = runDir + "/namespaces/mnt"
	hostLink = "sandbox-host"
	nodeLink = "eth0"
	// cgroup holds everything that runs on the node: the daemons in
	// cgroup/system, pods in cgroup/kubepods.
	cgroup   = "sandbox-node"
	nodeName = "sandbox-node"

	binDir           = stateDir + "/bin"
	containerdSocket = runDir + "/containerd.sock"
)

// Addresses. Host and node are the two ends of a link; the host has routes to
// pods and Services through the node, and nothing has a route out of the machine.
var (
	hostIP   = netip.MustParseAddr("10.87.0.1")
	nodeIP   = netip.MustParseAddr("10.87.0.2")
	linkNet  = netip.MustParsePrefix("10.87.0.0/30")
	pods     = netip.MustParsePrefix("10.88.0.0/24")
	services = netip.MustParsePrefix("10.96.0.0/16")
)

// Ports on the host. Those of etcd are not the usual ones, as tests may run an
// etcd of their own.
const (
	apiServerPort         = 6443
	etcdClientPort        = 12379
	etcdPeerPort          = 12380
	controllerManagerPort = 10257
	schedulerPort         = 10259
)

func statePath(elem ...string) string {
	return filepath.Join(append([]string{stateDir}, elem...)...)
}
