// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

package realcluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/poll"
	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/process"
)

const cgroupRoot = "/sys/fs/cgroup"

// setUpNode makes the node's namespaces and cgroup.
func setUpNode() error {
	if err := setUpNetwork(); err != nil {
		return fmt.Errorf("node network: %w", err)
	}
	if err := setUpMounts(); err != nil {
		return fmt.Errorf("node mount namespace: %w", err)
	}
	if err := setUpCgroup(); err != nil {
		return fmt.Errorf("node cgroup: %w", err)
	}
	return nil
}

// setUpNetwork connects a new network namespace with the host.
func setUpNetwork() error {
	bits := strconv.Itoa(linkNet.Bits())
	inNode := []string{"nsenter", "--net=" + netnsFile, "--"}
	for _, step := range [][]string{
		{"ip", "netns", "add", netnsName},
		{"ip", "link", "add", hostLink, "type", "veth", "peer", "name", nodeLink, "netns", netnsName},
		{"ip", "addr", "add", hostIP.String() + "/" + bits, "dev", hostLink},
		{"ip", "link", "set", hostLink, "up"},
		{"ip", "route", "add", pods.String(), "via", nodeIP.String()},
		{"ip", "route", "add", services.String(), "via", nodeIP.String()},
		append(inNode, "ip", "link", "set", "lo", "up"),
		append(inNode, "ip", "addr", "add", nodeIP.String()+"/"+bits, "dev", nodeLink),
		append(inNode, "ip", "link", "set", nodeLink, "up"),
		// A packet of the node's own to a Service must find some route
		// before it meets kube-proxy's rules.
		append(inNode, "ip", "route", "add", services.String(), "dev", nodeLink),
		append(inNode, "sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward"),
		// Replies between two pods of the bridge must meet those rules too.
		append(inNode, "sh", "-c",
			"test -e /proc/sys/net/bridge || modprobe br_netfilter; echo 1 >/proc/sys/net/bridge/bridge-nf-call-iptables"),
	} {
		if err := process.Run(step...); err != nil {
			return err
		}
	}
	return nil
}

// nodeDirs are directories of which the node has its own version, so that what
// its programs put there at fixed places goes away with the cluster. The parent
// of stateDir is the last: the others come from below it.
var nodeDirs = []string{"/tmp", "/var/log", "/run", "/var/lib"}

// setUpMounts makes the node's mount namespace. Mounts in it are shared among
// the node's programs and not with the host.
func setUpMounts() error {
	script := []string{"set -e"}
	// The cluster's own directories stay visible within the node's versions of their parents.
	for _, dir := range []string{stateDir, runDir} {
		script = append(script, fmt.Sprintf("mkdir -p %[2]s && mount --bind %[1]s %[2]s", dir, nodePath(dir)))
	}
	for _, dir := range nodeDirs {
		script = append(script, fmt.Sprintf("mkdir -p %[1]s && mount --rbind %[1]s %[2]s", nodePath(dir), dir))
	}
	script = append(script, "chmod 1777 /tmp", "mount --make-rshared /")
	return pinMountNamespace(script)
}

// nodePath is where the host sees the node's version of a directory.
func nodePath(dir string) string { return statePath("node", dir) }

// pinMountNamespace runs a script in a new mount namespace and keeps it by a
// bind mount, which the kernel allows only on a private mount.
func pinMountNamespace(script []string) error {
	dir := filepath.Dir(mountNS)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := syscall.Mount(dir, dir, "", syscall.MS_BIND, ""); err != nil {
		return err
	}
	if err := syscall.Mount("", dir, "", syscall.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := os.WriteFile(mountNS, nil, 0o600); err != nil {
		return err
	}
	return process.Run("unshare", "--mount="+mountNS, "--propagation=private", "--",
		"sh", "-c", strings.Join(script, "\n"))
}

// hierarchies lists the cgroup hierarchies: several with version 1, one with version 2.
func hierarchies() []string {
	if _, err := os.Stat(filepath.Join(cgroupRoot, "cgroup.controllers")); err == nil {
		return []string{cgroupRoot}
	}
	var dirs []string
	entries, _ := os.ReadDir(cgroupRoot)
	for _, e := range entries {
		if e.IsDir() { // links are other names of a hierarchy
			dirs = append(dirs, filepath.Join(cgroupRoot, e.Name()))
		}
	}
	return dirs
}

// setUpCgroup makes the node's cgroup, which kubelet expects to be there, and
// the one within for the node's daemons.
func setUpCgroup() error {
	for _, h := range hierarchies() {
		dir := filepath.Join(h, cgroup)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		if err := fillCpuset(h, dir); err != nil {
			return err
		}
		if err := os.Mkdir(filepath.Join(dir, "system"), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}

// fillCpuset gives a cgroup of version 1 its parent's processors: it has none
// at first, and nothing can run in it. Cgroups within inherit them.
func fillCpuset(parent, dir string) error {
	for _, name := range []string{"cpuset.cpus", "cpuset.mems"} {
		data, err := os.ReadFile(filepath.Join(parent, name))
		if errors.Is(err, fs.ErrNotExist) {
			return nil // another controller's hierarchy, or version 2
		}
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(dir, "cgroup.clone_children"), []byte("1"), 0o644)
}

// joinCgroup moves a daemon into the node's cgroup. What it starts is born
// there, so that all of the node can be found even if every parent is killed.
func joinCgroup(pid int) error {
	for _, h := range hierarchies() {
		procs := filepath.Join(h, cgroup, "system", "cgroup.procs")
		if err := os.WriteFile(procs, []byte(strconv.Itoa(pid)), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// cgroupPIDs lists all processes of the node.
func cgroupPIDs() map[int]bool {
	pids := map[int]bool{}
	walkCgroups(func(dir string) {
		data, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
		for _, field := range strings.Fields(string(data)) {
			if pid, err := strconv.Atoi(field); err == nil {
				pids[pid] = true
			}
		}
	})
	return pids
}

// walkCgroups calls visit for each cgroup of the node, those within first.
func walkCgroups(visit func(dir string)) {
	for _, h := range hierarchies() {
		var dirs []string
		//nolint:errcheck // Cgroups may go away while they are listed.
		filepath.WalkDir(filepath.Join(h, cgroup), func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append(dirs, path)
			}
			return nil
		})
		for i := len(dirs) - 1; i >= 0; i-- {
			visit(dirs[i])
		}
	}
}

// tearDownNode removes what setUpNode made, and all processes in it.
func tearDownNode(ctx context.Context) error {
	if err := killNode(ctx); err != nil {
		return err
	}
	var errs []error
	walkCgroups(func(dir string) { errs = append(errs, os.Remove(dir)) })
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("node cgroup: %w", err)
	}
	if _, err := net.InterfaceByName(hostLink); err == nil {
		if err := process.Run("ip", "link", "del", hostLink); err != nil {
			return err
		}
	}
	if _, err := os.Lstat(netnsFile); err == nil {
		if err := process.Run("ip", "netns", "del", netnsName); err != nil {
			return err
		}
	}
	if err := removeNetnsDir(); err != nil {
		return err
	}
	return unmountBelow(stateDir, runDir)
}

// removeNetnsDir unmounts and removes the directory that "ip netns add" made,
// unless others have namespaces there.
func removeNetnsDir() error {
	dir := filepath.Dir(netnsFile)
	if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
		return nil
	}
	if err := unmountBelow(dir); err != nil {
		return err
	}
	return os.Remove(dir)
}

// killNode kills the node's processes until there are none: a process may start
// another while they are listed.
func killNode(ctx context.Context) error {
	return poll.Until(ctx, 20*time.Millisecond, func() error {
		pids := cgroupPIDs()
		if len(pids) == 0 {
			return nil
		}
		for pid := range pids {
			syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // It may have ended.
		}
		return fmt.Errorf("%d processes of the node are left", len(pids))
	})
}

// unmountBelow unmounts what is mounted on the host at or below some
// directories, the last mount first.
func unmountBelow(dirs ...string) error {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	points := mountPoints(string(data), dirs...)
	for i := len(points) - 1; i >= 0; i-- {
		if err := syscall.Unmount(points[i], syscall.MNT_DETACH); err != nil {
			return fmt.Errorf("unmount %s: %w", points[i], err)
		}
	}
	return nil
}

// mountPoints returns the mount points of a mountinfo table that are at or
// below one of some directories.
func mountPoints(mountinfo string, dirs ...string) []string {
	var points []string
	for line := range strings.Lines(mountinfo) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		for _, dir := range dirs {
			if fields[4] == dir || strings.HasPrefix(fields[4], dir+"/") {
				points = append(points, fields[4])
			}
		}
	}
	return points
}
