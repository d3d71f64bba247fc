#!/usr/bin/env bash
# Copyright The sandbox-apiserver Authors
# SPDX-License-Identifier: Apache-2.0
#
# Usage: bench.sh
# Prints latencies on the real cluster, which is brought up first and left up.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

cd "${ROOT}"
hack/up.sh real
export KUBECONFIG=${OUTPUT}/local/kubeconfig
track "measuring" go run ./test/bench
