#!/usr/bin/env bash
# Copyright The sandbox-apiserver Authors
# SPDX-License-Identifier: Apache-2.0
#
# Usage: up.sh real [--tour] | light
# Brings a local cluster up with this project in it, built from this checkout. Doing it again changes nothing but what has changed.
#   real:  a node that runs containers; both programs are Pods, deployed from artifacts/. --tour shows them at work afterwards.
#   light: a control plane with simulated nodes; both programs are processes beside it.
set -Eeuo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

readonly NAMESPACE=agent-sandbox-system
readonly APISERVICES=(v1beta1.agents.x-k8s.io v1beta1.extensions.agents.x-k8s.io)
readonly PROGRAMS=(sandbox-apiserver sandbox-controller)

# image_tag PROGRAM: the tag that stands for what the program is now.
image_tag() { sha256sum "${BIN}/$1" | cut -c1-16; }

# load_images: makes the images of our programs, unless they are there, and loads them into the cluster.
load_images() {
  local program archive archives=()
  mkdir -p "${OUTPUT}/images"
  for program in "${PROGRAMS[@]}"; do
    archive=${OUTPUT}/images/${program}-$(image_tag "${program}").tar
    if [[ ! -e ${archive} ]]; then
      step "making the image of ${program}"
      rm -f "${OUTPUT}/images/${program}"-*.tar
      "${BIN}/localcluster" image --name "sandbox.local/${program}:$(image_tag "${program}")" --binary "${BIN}/${program}" --out "${archive}"
    fi
    archives+=("${archive}")
  done
  step "loading images"
  "${BIN}/localcluster" load "${archives[@]}"
}

# write_overlay DIR: the deployment with the images made above.
write_overlay() {
  local program
  mkdir -p "$1"
  {
    printf '%s\n' "apiVersion: kustomize.config.k8s.io/v1beta1" "kind: Kustomization" "resources: [../../../artifacts/overlays/local]" "images:"
    for program in "${PROGRAMS[@]}"; do
      printf -- '- {name: sandbox.local/%s, newTag: "%s"}\n' "${program}" "$(image_tag "${program}")"
    done
  } >"$1/kustomization.yaml"
}

await_api() { kube wait --for=condition=Available "${APISERVICES[@]/#/apiservice/}" --timeout=60s >&2; }

deploy() {
  write_overlay "${OUTPUT}/local/deploy"
  step "applying artifacts"
  kube apply -k "${OUTPUT}/local/deploy" >&2
  local deployment
  for deployment in sandbox-apiserver agent-sandbox-controller; do
    track "waiting for deployment ${deployment}" \
      "${BIN}/kubectl" --kubeconfig "${KUBECONFIG}" -n "${NAMESPACE}" rollout status "deployment/${deployment}" --timeout=180s >&2
  done
  await_api
}

up_real() {
  export KUBECONFIG=${OUTPUT}/local/kubeconfig
  mkdir -p "${OUTPUT}/local"
  "${BIN}/localcluster" build real --out-dir "${BIN}"
  "${BIN}/localcluster" up real --kubeconfig "${KUBECONFIG}"
  load_images
  trap '"${ROOT}/hack/logs.sh" real' ERR
  deploy
  trap - ERR
  step "ready: export KUBECONFIG=${KUBECONFIG} PATH=${BIN}:\$PATH"
}

up_light() {
  local dir=${OUTPUT}/light
  export KUBECONFIG=${dir}/kubeconfig
  mkdir -p "${dir}"
  "${BIN}/localcluster" build light --out-dir "${BIN}"
  "${BIN}/localcluster" up light --dir "${dir}" --kubeconfig "${KUBECONFIG}"
  step "starting sandbox-apiserver"
  "${BIN}/localcluster" stop sandbox-controller --dir "${dir}"
  "${BIN}/localcluster" stop sandbox-apiserver --dir "${dir}"
  "${BIN}/localcluster" start sandbox-apiserver --dir "${dir}" --bin "${BIN}/sandbox-apiserver"
  step "starting sandbox-controller"
  "${BIN}/localcluster" start sandbox-controller --dir "${dir}" --bin "${BIN}/sandbox-controller"
  kube apply -f "${ROOT}/artifacts/base/user-roles.yaml" >&2
  await_api
  step "ready: export KUBECONFIG=${KUBECONFIG} PATH=${BIN}:\$PATH"
}

profile=${1:-}
[[ ${profile} == real || ${profile} == light ]] || die "say which cluster: real or light"
require_root "a local cluster"
"${ROOT}/hack/build.sh"
"up_${profile}"
[[ ${2:-} != --tour ]] || exec "${ROOT}/hack/tour.sh"
