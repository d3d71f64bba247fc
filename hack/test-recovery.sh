#!/usr/bin/env bash
# Copyright The sandbox-apiserver Authors
# SPDX-License-Identifier: Apache-2.0
#
# Usage: test-recovery.sh
# Ends every process of the real cluster at once, as a reboot or an out-of-memory killer would; brings it up from another checkout, which
# knows nothing of the first; and takes it down. It fails if either does not succeed, or if anything is left on the machine. At last it
# leaves a new cluster up.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

readonly STATE=/var/lib/sandbox-localcluster NODE=sandbox-node LINK=sandbox-host

# processes: the cluster's, by the program they run, and the node's, by the cgroup that everything on the node is in.
processes() {
  {
    find /proc -maxdepth 2 -name exe -lname "${STATE}/*" -printf '%h\n' 2>/dev/null | sed 's,/proc/,,'
    find /sys/fs/cgroup -path "*/${NODE}/*" -name cgroup.procs -exec cat {} + 2>/dev/null
  } | sort -un
}

# leftovers: what a cluster that was taken down must not leave.
leftovers() {
  processes | sed 's/^/process /'
  ip netns list | grep -w "${NODE}" | sed 's/^/network namespace /' || true
  ip -o link | grep -w "${LINK}" | sed 's/^/link /' || true
  ip route | grep -E '^10\.(88\.0\.0/24|96\.0\.0/16)' | sed 's/^/route /' || true
  grep -E "${STATE}|/run/${NODE%-node}-localcluster|/run/netns/${NODE}" /proc/mounts | sed 's/^/mount /' || true
  find /sys/fs/cgroup -maxdepth 3 -type d -name "${NODE}" 2>/dev/null | sed 's/^/cgroup /'
  find "${STATE}" -maxdepth 0 2>/dev/null | sed 's/^/directory /' || true
}

require_root "the test of recovery"
cd "${ROOT}"
checkout=$(mktemp -d)
trap 'rm -rf "${checkout}"' EXIT

hack/up.sh real
mapfile -t pids < <(processes)
((${#pids[@]} > 10)) || die "the cluster has only ${#pids[@]} processes, so there is nothing to recover from"
step "ending ${#pids[@]} processes of the cluster"
# Some are children that go with their parents.
kill -KILL "${pids[@]}" 2>/dev/null || true

step "bringing it up from another checkout"
git clone --quiet "${ROOT}" "${checkout}/other"
make --no-print-directory -C "${checkout}/other" up

make --no-print-directory -C "${checkout}/other" down
found=$(leftovers)
[[ -z ${found} ]] || die "left behind after down:"$'\n'"${found}"
step "nothing is left on the machine"
hack/up.sh real
