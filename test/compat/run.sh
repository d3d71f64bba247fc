#!/usr/bin/env bash
# Copyright The sandbox-apiserver Authors
# SPDX-License-Identifier: Apache-2.0
#
# Usage: run.sh KUBECONFIG [go test flags]...
# Runs the rows of this package against the cluster of a kubeconfig, whoever serves agents.x-k8s.io there, and says at the end which
# rows do not hold. Its nodes must be simulated ones that make each Pod ready; kubectl is that of _output/bin. The user must be an
# administrator: each row has a namespace of its own, which is deleted.
set -euo pipefail

(($# >= 1)) || {
  echo "usage: ${0##*/} KUBECONFIG [go test flags]..." >&2
  exit 2
}
COMPAT_KUBECONFIG=$(realpath "$1")
export COMPAT_KUBECONFIG
cd "$(dirname "${BASH_SOURCE[0]}")"
# Rows wait more than they work, and one of them for two minutes. Without a package named, go test shows what passing tests print.
go test -count=1 -timeout=20m -parallel=6 "${@:2}"
