#!/usr/bin/env bash
# Copyright The sandbox-apiserver Authors
# SPDX-License-Identifier: Apache-2.0
#
# Usage: [INVARIANTS="-seed=1 -claims=100000"] test.sh [unit | integration | invariants | e2e | recovery]...
# Runs tests; all of them if none are named.
#   unit:        every package, with the race detector
#   integration: against the light cluster, which the tests start
#   invariants:  thousands of claims at random against several servers while things fail, on a light cluster; INVARIANTS are its flags
#   e2e:         against the real cluster, which is brought up first and left up
#   recovery:    of the real cluster from the sudden end of all its processes; a new one is left up
# Those for which there must be a cluster need root. Without it they are left out, which is a failure.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

unit() {
  require_command gcc gcc libc6-dev
  local packages
  mapfile -t packages < <(go list ./... | grep -vE "/test/(compat|e2e|integration|invariants)$")
  track "unit tests" go test -race "${packages[@]}"
  track "unit tests of localcluster" go test -C test/localcluster -race ./...
}

# light: what a light cluster and the programs beside it need.
light() {
  "${ROOT}/hack/build.sh"
  "${BIN}/localcluster" build light --out-dir "${BIN}"
}

integration() {
  light
  # One after the other: each of the two brings up a cluster.
  track "integration tests" go test -v -count=1 -timeout=20m -p 1 ./test/integration/... ./test/compat/...
}

invariants() {
  local flags
  read -ra flags <<<"${INVARIANTS:-}"
  light
  track "claims while things fail" go test -v -count=1 -timeout=60m ./test/invariants -args "${flags[@]}"
}

e2e() {
  "${ROOT}/hack/up.sh" real
  track "end-to-end tests" go test -v -count=1 -timeout=20m ./test/e2e/... || {
    "${ROOT}/hack/logs.sh" real
    return 1
  }
}

recovery() { "${ROOT}/hack/test-recovery.sh"; }

run() {
  case $1 in
    unit) unit ;;
    integration | invariants | e2e | recovery)
      require_root "the cluster of the $1 tests, which are left out, "
      "$1"
      ;;
    *) die "unknown suite $1" ;;
  esac
}

cd "${ROOT}"
suites=("$@")
((${#suites[@]})) || suites=(unit integration invariants e2e recovery)
if ((${#suites[@]} == 1)); then
  run "${suites[0]}"
  step "${suites[0]} tests passed"
  exit
fi
# One that fails does not keep the others from being run.
failed=()
for suite in "${suites[@]}"; do
  hack/test.sh "${suite}" || failed+=("${suite}")
done
((${#failed[@]} == 0)) || die "failed or left out: ${failed[*]}"
step "all tests passed: ${suites[*]}"
