#!/usr/bin/env bash
# Copyright The sandbox-apiserver Authors
# SPDX-License-Identifier: Apache-2.0
#
# Usage: tour.sh
# Shows the main job on the cluster that "make up" started: each command and what it printed. Fails where that is not what it should be.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

export KUBECONFIG=${OUTPUT}/local/kubeconfig PATH=${BIN}:${PATH}
readonly NAMESPACE=sandbox-tour SANDBOX=workspace TIMEOUT=60s
readonly GREETING="hello from ${SANDBOX}" POOL=shell

# run COMMAND...: prints a command as one would type it, then runs it; its output is kept for expect.
run() {
  local word shown=
  for word in "$@"; do
    # Quotes only where the shell needs them.
    [[ ${word} =~ ^[a-zA-Z0-9_./:=@,-]+$ ]] || word="'${word//\'/\'\\\'\'}'"
    shown+=" ${word}"
  done
  printf '\n$%s\n' "${shown}"
  OUT=$("$@" 2>&1) || {
    printf '%s\n' "${OUT}"
    die "the command failed"
  }
  printf '%s\n' "${OUT}"
}

# expect TEXT: the last command printed the text.
expect() { [[ ${OUT} == *"$1"* ]] || die "expected: $1"; }

clean_up() {
  kubectl delete namespace "${NAMESPACE}" --ignore-not-found --timeout="${TIMEOUT}" >/dev/null
}

step "the tour"
cd "${ROOT}"
clean_up
trap clean_up EXIT

run kubectl get apiservices v1beta1.agents.x-k8s.io v1beta1.extensions.agents.x-k8s.io
[[ ${OUT} != *False* ]] || die "not available"
run kubectl create namespace "${NAMESPACE}"
run kubectl -n "${NAMESPACE}" apply -f artifacts/examples/sandbox-with-volume.yaml
run kubectl -n "${NAMESPACE}" wait --for=condition=Ready "sandbox/${SANDBOX}" --timeout="${TIMEOUT}"
run kubectl -n "${NAMESPACE}" get sandboxes,pods,persistentvolumeclaims
# shellcheck disable=SC2016 # The shell in the sandbox is to expand it.
run kubectl sandbox exec -n "${NAMESPACE}" "${SANDBOX}" -- sh -c 'echo "hello from $(hostname)" | tee /home/greeting'
expect "${GREETING}"
run kubectl sandbox suspend -n "${NAMESPACE}" "${SANDBOX}" --wait
run kubectl -n "${NAMESPACE}" get pods
expect "No resources found"
run kubectl sandbox resume -n "${NAMESPACE}" "${SANDBOX}" --wait
run kubectl sandbox exec -n "${NAMESPACE}" "${SANDBOX}" -- cat /home/greeting
expect "${GREETING}"
run kubectl -n "${NAMESPACE}" delete sandbox "${SANDBOX}"

run kubectl -n "${NAMESPACE}" apply -f artifacts/examples/warm-pool.yaml
run kubectl -n "${NAMESPACE}" wait --for=jsonpath='{.status.readyReplicas}'=3 "sandboxwarmpool/${POOL}" --timeout="${TIMEOUT}"
# What is printed is the response to the claim's creation: nothing is waited for.
run kubectl -n "${NAMESPACE}" create -f artifacts/examples/claim.yaml \
  -o jsonpath='{.status.sandbox.name} Ready={.status.conditions[?(@.type=="Ready")].status} {.status.sandbox.podIPs}'
expect "Ready=True"
run kubectl sandbox exec -n "${NAMESPACE}" "${OUT%% *}" -- hostname
expect "${POOL}-"
run kubectl -n "${NAMESPACE}" get sandboxclaims,sandboxwarmpools,sandboxes
trap - EXIT
clean_up
printf '\nAll was as it should be. Total time: %s s\n' "$(elapsed)"
