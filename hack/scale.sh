#!/usr/bin/env bash
# Copyright The sandbox-apiserver Authors
# SPDX-License-Identifier: Apache-2.0
#
# Usage: scale.sh [FLAGS OF test/scale]
# Counts what many Sandboxes cost, on a light cluster of its own.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

require_root "a local cluster"
cd "${ROOT}"
hack/build.sh
"${BIN}/localcluster" build light --out-dir "${BIN}"
track "measuring" go run ./test/scale "$@"
