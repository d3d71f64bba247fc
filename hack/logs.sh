#!/usr/bin/env bash
# Copyright The sandbox-apiserver Authors
# SPDX-License-Identifier: Apache-2.0
#
# Usage: logs.sh real | light
# Shows what there is to see of our two programs in a local cluster, for when something went wrong. Never fails.
set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

readonly NAMESPACE=agent-sandbox-system LINES_SHOWN=200

# show COMMAND...: a command and what it says.
show() {
  printf '\n--- %s\n' "$*"
  timeout 20 "$@" 2>&1
}

logs_real() {
  local kubectl=("${BIN}/kubectl" --kubeconfig "${OUTPUT}/local/kubeconfig") deployment
  show "${kubectl[@]}" get apiservice v1beta1.agents.x-k8s.io v1beta1.extensions.agents.x-k8s.io -o yaml
  show "${kubectl[@]}" get pods --all-namespaces -o wide
  show "${kubectl[@]}" -n "${NAMESPACE}" get events --sort-by=.lastTimestamp
  for deployment in sandbox-apiserver agent-sandbox-controller; do
    show "${kubectl[@]}" -n "${NAMESPACE}" logs "deployment/${deployment}" --all-containers --tail="${LINES_SHOWN}"
    show "${kubectl[@]}" -n "${NAMESPACE}" logs "deployment/${deployment}" --all-containers --tail="${LINES_SHOWN}" --previous
  done
}

logs_light() {
  show tail -n "${LINES_SHOWN}" "${OUTPUT}"/light/log/sandbox-{apiserver,controller}.log
}

case ${1:-} in
  real) logs_real >&2 ;;
  light) logs_light >&2 ;;
  *) die "say which cluster: real or light" ;;
esac
exit 0
