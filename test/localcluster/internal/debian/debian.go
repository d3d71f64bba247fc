// Copyright The sandbox-apiserver Authors
// SPDX-License-Identifier: Apache-2.0

// Package debian installs what the real cluster takes from the distribution:
// tools that its programs run, and what is needed to compile runc.
package debian

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/sandbox-apiserver/sandbox-apiserver/test/localcluster/internal/progress"
)

// requirement is a package together with a file or command that shows it is there.
type requirement struct{ Package, Probe string }

var requirements = []requirement{
	{"iproute2", "ip"},
	{"util-linux", "nsenter"},
	{"mount", "mount"},
	{"iptables", "iptables"},
	{"nftables", "nft"},
	{"conntrack", "conntrack"},
	{"ethtool", "ethtool"},
	{"busybox-static", "/usr/share/doc/busybox-static"},
	{"gcc", "gcc"},
	{"libc6-dev", "/usr/include/stdlib.h"},
	{"pkg-config", "pkg-config"},
	{"libseccomp-dev", "/usr/include/seccomp.h"},
}

// Install installs the packages that are missing, if any.
func Install(ctx context.Context, report *progress.Reporter) error {
	names := missing(requirements, present)
	if len(names) == 0 {
		return nil
	}
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("what these Debian packages contain is missing and apt-get is not there to install it: %s",
			strings.Join(names, " "))
	}
	report.Line("installing Debian packages: %s", strings.Join(names, " "))
	return report.Track("installing Debian packages", nil, func() error {
		if err := aptGet(ctx, "update"); err != nil {
			return err
		}
		return aptGet(ctx, append([]string{"install", "--yes", "--no-install-recommends"}, names...)...)
	})
}

// missing names the packages whose probe fails.
func missing(requirements []requirement, present func(probe string) bool) []string {
	var names []string
	for _, r := range requirements {
		if !present(r.Probe) {
			names = append(names, r.Package)
		}
	}
	return names
}

// present reports whether a file, or a command on the PATH, exists.
func present(probe string) bool {
	if strings.HasPrefix(probe, "/") {
		_, err := os.Stat(probe)
		return err == nil
	}
	_, err := exec.LookPath(probe)
	return err == nil
}

func aptGet(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "apt-get", append([]string{"--quiet"}, args...)...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("apt-get %s: %w:\n%s", args[0], err, out)
	}
	return nil
}
