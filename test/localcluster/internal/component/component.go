// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package component lists the programs that the local clusters run: where their
// source is pinned, how they are built, and which profile needs them.
//
// Every component has a wrapper module of its own under components/, because
// the programs require different versions of the same modules.
package component

import (
	"fmt"
	"slices"
	"strings"
)

// Profile names a kind of local cluster.
type Profile string

const (
	// Real is one node with kubelet, containerd and runc.
	Real Profile = "real"
	// Light is a control plane with simulated nodes.
	Light Profile = "light"
)

// ParseProfile checks the name of a profile.
func ParseProfile(name string) (Profile, error) {
	switch p := Profile(name); p {
	case Real, Light:
		return p, nil
	}
	return "", fmt.Errorf("unknown profile %q: want %s or %s", name, Real, Light)
}

// Command is one program of a component.
type Command struct {
	// Name is the file name of the binary.
	Name string
	// Package is the import path of its main package.
	Package string
	// RealOnly commands are not needed by the light profile.
	RealOnly bool
}

// Component is a set of programs that are built from one wrapper module.
type Component struct {
	// Name is the directory below components/ and the start of the cache directory's name.
	Name string
	// Module is the module whose required version is the component's version;
	// empty if the wrapper module is itself the source.
	Module   string
	Commands []Command
	Tags     []string
	// CGO is set for the only program that cannot do without a C library (runc: libseccomp).
	CGO bool
	// LDFlags gives the linker flags that stamp the version.
	LDFlags func(version string) []string
	// RealOnly components are not needed by the light profile.
	RealOnly bool
	// Extract names files of Module that the programs read at run time; they
	// are joined as YAML documents into the file ExtractTo.
	Extract   []string
	ExtractTo string
}

// KwokStages is the file of the kwok component that holds its stages: they are
// part of the module but not of the binary, which simulates nothing without them.
const KwokStages = "stages.yaml"

var all = []Component{
	{
		Name:    "kubernetes",
		Module:  "k8s.io/kubernetes",
		LDFlags: kubernetesVersion,
		Commands: []Command{
			{Name: "kube-apiserver", Package: "k8s.io/kubernetes/cmd/kube-apiserver"},
			{Name: "kube-controller-manager", Package: "k8s.io/kubernetes/cmd/kube-controller-manager"},
			{Name: "kube-scheduler", Package: "k8s.io/kubernetes/cmd/kube-scheduler"},
			{Name: "kubectl", Package: "k8s.io/kubernetes/cmd/kubectl"},
			{Name: "kubelet", Package: "k8s.io/kubernetes/cmd/kubelet", RealOnly: true},
			{Name: "kube-proxy", Package: "k8s.io/kubernetes/cmd/kube-proxy", RealOnly: true},
		},
	},
	{
		Name:     "etcd",
		Module:   "go.etcd.io/etcd/server/v3",
		Commands: []Command{{Name: "etcd", Package: "go.etcd.io/etcd/server/v3"}},
	},
	{
		Name:     "kwok",
		Module:   "sigs.k8s.io/kwok",
		LDFlags:  stamp("sigs.k8s.io/kwok/pkg/consts.Version"),
		Commands: []Command{{Name: "kwok", Package: "sigs.k8s.io/kwok/cmd/kwok"}},
		Extract: []string{
			"kustomize/stage/node/fast/node-initialize.yaml",
			"kustomize/stage/node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
			"kustomize/stage/pod/fast/pod-ready.yaml",
			"kustomize/stage/pod/fast/pod-complete.yaml",
			"kustomize/stage/pod/fast/pod-delete.yaml",
		},
		ExtractTo: KwokStages,
	},
	{
		Name:   "containerd",
		Module: "github.com/containerd/containerd/v2",
		// These snapshotters need C headers or kernel features that the cluster does not use.
		Tags:     []string{"no_btrfs", "no_devmapper", "no_zfs"},
		LDFlags:  stamp("github.com/containerd/containerd/v2/version.Version"),
		RealOnly: true,
		Commands: []Command{
			{Name: "containerd", Package: "github.com/containerd/containerd/v2/cmd/containerd"},
			{Name: "containerd-shim-runc-v2", Package: "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2"},
			{Name: "ctr", Package: "github.com/containerd/containerd/v2/cmd/ctr"},
		},
	},
	{
		Name:     "runc",
		Module:   "github.com/opencontainers/runc",
		Tags:     []string{"seccomp", "netgo", "osusergo"},
		CGO:      true,
		LDFlags:  stamp("main.version"),
		RealOnly: true,
		Commands: []Command{{Name: "runc", Package: "github.com/opencontainers/runc"}},
	},
	{
		Name:     "cni-plugins",
		Module:   "github.com/containernetworking/plugins",
		LDFlags:  stamp("github.com/containernetworking/plugins/pkg/utils/buildversion.BuildVersion"),
		RealOnly: true,
		Commands: []Command{
			{Name: "bridge", Package: "github.com/containernetworking/plugins/plugins/main/bridge"},
			{Name: "host-local", Package: "github.com/containernetworking/plugins/plugins/ipam/host-local"},
			{Name: "loopback", Package: "github.com/containernetworking/plugins/plugins/main/loopback"},
			{Name: "portmap", Package: "github.com/containernetworking/plugins/plugins/meta/portmap"},
		},
	},
	{
		Name:     "pause",
		RealOnly: true,
		Commands: []Command{{Name: "pause", Package: "."}},
	},
}

// For lists the components of a profile with the commands that it needs.
func For(p Profile) []Component {
	var out []Component
	for _, c := range all {
		if p == Light && c.RealOnly || p == Real && c.Name == "kwok" {
			continue
		}
		c.Commands = slices.DeleteFunc(slices.Clone(c.Commands), func(cmd Command) bool {
			return p == Light && cmd.RealOnly
		})
		out = append(out, c)
	}
	return out
}

// stamp returns linker flags that set one string variable to the version.
func stamp(variable string) func(string) []string {
	return func(version string) []string { return []string{"-X " + variable + "=" + version} }
}

// kubernetesVersion stamps both packages that report a version: the servers use
// component-base, the user agent of client-go uses its own. Unstamped servers
// call themselves v0.0.0, which version-skew checks of clients do not expect.
func kubernetesVersion(version string) []string {
	major, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	var flags []string
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		flags = append(flags,
			fmt.Sprintf("-X %s.gitVersion=%s", pkg, version),
			fmt.Sprintf("-X %s.gitMajor=%s", pkg, major),
			fmt.Sprintf("-X %s.gitMinor=%s", pkg, minor),
			fmt.Sprintf("-X %s.gitTreeState=clean", pkg))
	}
	return flags
}
