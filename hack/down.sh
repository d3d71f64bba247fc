#!/usr/bin/env bash
# Copyright The sandbox-apiserver Authors
# SPDX-License-Identifier: Apache-2.0
#
# Usage: down.sh real | light
# Removes a local cluster with everything that it left on the machine.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

require_root "removing a local cluster"
case ${1:-} in
  real) args=(down real) kubeconfig=${OUTPUT}/local/kubeconfig ;;
  light) args=(down light --dir "${OUTPUT}/light") kubeconfig=${OUTPUT}/light/kubeconfig ;;
  *) die "say which cluster: real or light" ;;
esac
[[ -x ${BIN}/localcluster ]] || "${ROOT}/hack/build.sh" localcluster
"${BIN}/localcluster" "${args[@]}"
rm -f "${kubeconfig}"
