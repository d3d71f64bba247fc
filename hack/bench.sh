#!/usr/bin/env bash
# Copyright The sandbox-apiserver Authors
# SPDX-License-Identifier: Apache-2.0
#
# Usage: bench.sh [FLAGS OF test/bench/claims]
# Prints how long claims take and what they cost, on a light cluster of its own; then latencies on the real cluster, which is brought
# up first and left up. With flags, only claims are measured.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

require_root "a local cluster"
cd "${ROOT}"
hack/build.sh
"${BIN}/localcluster" build light --out-dir "${BIN}"
go run ./test/bench/claims --json "${OUTPUT}/bench-claims.json" "$@"
(($# == 0)) || exit 0
hack/up.sh real
export KUBECONFIG=${OUTPUT}/local/kubeconfig
track "measuring on the real cluster" go run ./test/bench
