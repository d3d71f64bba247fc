#!/usr/bin/env bash
# Copyright The sandbox-apiserver Authors
# SPDX-License-Identifier: Apache-2.0
#
# Usage: fuzz.sh [DURATION]
# Fuzzes each target of the module for the given time, 10s by default. An input that makes one fail is written to the target's
# testdata, from where every later "go test" tries it again; it belongs into the commit that repairs the fault.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

cd "${ROOT}"
duration=${1:-10s}
mapfile -t directories < <(git grep -lE '^func Fuzz' -- '*_test.go' | xargs -r -n 1 dirname | sort -u)
((${#directories[@]})) || die "there is nothing to fuzz"
for directory in "${directories[@]}"; do
  # The list ends in a line about the package.
  mapfile -t targets < <(go test -list '^Fuzz' "./${directory}" | grep '^Fuzz')
  ((${#targets[@]})) || die "cannot list the targets in ${directory}"
  for target in "${targets[@]}"; do
    # Without the limit, an input that only widens the coverage is made smaller for a minute before the next one is tried.
    track "${target} in ${directory}" go test -run '^$' -fuzz "^${target}\$" -fuzztime "${duration}" -fuzzminimizetime 1s "./${directory}"
  done
done
step "fuzzed ${#directories[@]} packages"
