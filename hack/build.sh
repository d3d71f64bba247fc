#!/usr/bin/env bash
# Copyright The sandbox-apiserver Authors
# SPDX-License-Identifier: Apache-2.0
#
# Usage: build.sh [product | localcluster]...
# Builds the programs of this project, and the one that starts local clusters, into _output/bin; both if none is named.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# version: what this checkout is, as a semantic version.
version() {
  local described commit
  described=$(git -C "${ROOT}" describe --tags --match 'v[0-9]*' 2>/dev/null) || described=v0.1.0-dev
  commit=$(commit)
  case "${described}" in
    # git describe adds -<commits>-g<commit> to the tag if that is not on this very commit.
    *-g*) echo "${described%-g*}+${commit:0:12}" ;;
    *-dev) echo "${described}${commit:++${commit:0:12}}" ;;
    *) echo "${described}" ;;
  esac
}

# commit: the commit, or nothing outside a git checkout.
commit() { git -C "${ROOT}" rev-parse HEAD 2>/dev/null || true; }

# commit_date: when it was made. That of the build would make every binary another one.
commit_date() {
  TZ=UTC git -C "${ROOT}" log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd 2>/dev/null || echo 1970-01-01T00:00:00Z
}

# tree_state: whether the sources are those of the commit. What is not tracked does not count.
tree_state() {
  [[ -n $(commit) ]] || return 0
  if git -C "${ROOT}" diff --quiet HEAD -- 2>/dev/null; then echo clean; else echo dirty; fi
}

# version_flags: flags for the linker that tell the programs, and the clients in them, what they are.
version_flags() {
  local version number package
  version=$(version)
  number=${version#v}
  for package in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
    printf -- '-X %s=%s ' \
      "${package}.gitVersion" "${version}" \
      "${package}.gitMajor" "${number%%.*}" \
      "${package}.gitMinor" "$(cut -d. -f2 <<<"${number}")" \
      "${package}.gitCommit" "$(commit)" \
      "${package}.gitTreeState" "$(tree_state)" \
      "${package}.buildDate" "$(commit_date)"
  done
}

product() {
  track "building sandbox-apiserver, sandbox-controller, kubectl-sandbox" \
    env CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w $(version_flags)" -o "${BIN}/" \
    ./cmd/sandbox-apiserver ./cmd/sandbox-controller ./cmd/kubectl-sandbox
}

# Without -trimpath: it finds the components that it builds beside its own source.
localcluster() {
  track "building localcluster" env CGO_ENABLED=0 go build -C test/localcluster -buildvcs=false -o "${BIN}/localcluster" .
}

mkdir -p "${BIN}"
cd "${ROOT}"
parts=("$@")
((${#parts[@]})) || parts=(product localcluster)
for part in "${parts[@]}"; do
  case ${part} in
    product | localcluster) "${part}" ;;
    *) die "unknown part ${part}" ;;
  esac
done
