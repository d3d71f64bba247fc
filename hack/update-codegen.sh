#!/usr/bin/env bash
# Copyright The sandbox-apiserver Authors
# SPDX-License-Identifier: Apache-2.0
#
# Regenerates all generated code: deepcopy, defaults, conversions, protobuf, OpenAPI, apply configurations, clientset, listers,
# informers. The generators are pinned by go.mod; protoc is installed on Debian where it is missing.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
MODULE=github.com/sandbox-apiserver/sandbox-apiserver
BOILERPLATE=${ROOT}/hack/boilerplate.go.txt
TOOLS=${ROOT}/_output/tools
GENERATED=pkg/generated
VERSIONED=(pkg/apis/agents/v1beta1 pkg/apis/extensions/v1beta1)
INTERNAL=(pkg/apis/agents pkg/apis/extensions)

step() { printf '%(%H:%M:%S)T %s\n' -1 "$*"; }
# packages DIR...: the import paths of our directories, one a line.
packages() { printf "${MODULE}/%s\n" "$@"; }

install_protoc() {
  command -v protoc >/dev/null && return
  step "installing protoc"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends protobuf-compiler >/dev/null
}

build_generators() {
  step "building the generators"
  mkdir -p "${TOOLS}"
  go build -o "${TOOLS}/" \
    k8s.io/code-generator/cmd/{applyconfiguration-gen,client-gen,conversion-gen,deepcopy-gen,defaulter-gen,informer-gen,lister-gen} \
    k8s.io/code-generator/cmd/go-to-protobuf k8s.io/code-generator/cmd/go-to-protobuf/protoc-gen-gogo \
    k8s.io/kube-openapi/cmd/openapi-gen golang.org/x/tools/cmd/goimports
  export PATH=${TOOLS}:${PATH}
}

generate_helpers() {
  step "deepcopy, defaults, conversions"
  mapfile -t versioned < <(packages "${VERSIONED[@]}")
  mapfile -t all < <(packages "${VERSIONED[@]}" "${INTERNAL[@]}")
  deepcopy-gen --go-header-file "${BOILERPLATE}" --output-file zz_generated.deepcopy.go "${all[@]}"
  defaulter-gen --go-header-file "${BOILERPLATE}" --output-file zz_generated.defaults.go "${versioned[@]}"
  # Templates and claims hold parts of a Sandbox, whose conversions are found in its own package.
  conversion-gen --go-header-file "${BOILERPLATE}" --output-file zz_generated.conversion.go \
    --extra-peer-dirs "${MODULE}/pkg/apis/agents/v1beta1" "${versioned[@]}"
}

# go-to-protobuf lays files out by import path, so it is given a tree of links that looks like a GOPATH.
generate_protobuf() {
  step "protobuf"
  local tree m
  tree=$(mktemp -d)
  trap 'rm -rf "${tree}"' RETURN
  mkdir -p "${tree}/$(dirname "${MODULE}")" "${tree}/k8s.io" "${tree}/github.com/gogo"
  ln -s "${ROOT}" "${tree}/${MODULE}"
  for m in k8s.io/api k8s.io/apimachinery github.com/gogo/protobuf; do
    ln -s "$(go list -m -f '{{.Dir}}' "${m}")" "${tree}/${m}"
  done
  # A leading minus means: import it, do not generate it.
  local imported=-k8s.io/apimachinery/pkg/util/intstr,-k8s.io/apimachinery/pkg/api/resource,-k8s.io/apimachinery/pkg/runtime/schema
  imported+=,-k8s.io/apimachinery/pkg/runtime,-k8s.io/apimachinery/pkg/apis/meta/v1,-k8s.io/api/core/v1,-k8s.io/api/networking/v1
  go-to-protobuf --go-header-file "${BOILERPLATE}" --output-dir "${tree}" --proto-import "${tree}" \
    --drop-embedded-fields k8s.io/apimachinery/pkg/apis/meta/v1.TypeMeta --drop-gogo-go \
    --apimachinery-packages "${imported}" --packages "$(packages "${VERSIONED[@]}" | paste -sd,)"
}

# The violations report may only shrink: a new violation is a diff for the reviewer.
generate_openapi() {
  step "OpenAPI"
  local readonly=(k8s.io/api/{autoscaling,core,networking}/v1 k8s.io/apimachinery/pkg/{api/resource,apis/meta/v1,runtime,util/intstr,version})
  mapfile -t versioned < <(packages "${VERSIONED[@]}")
  openapi-gen --go-header-file "${BOILERPLATE}" --output-dir "${ROOT}/${GENERATED}/openapi" --output-pkg "${MODULE}/${GENERATED}/openapi" \
    --output-file zz_generated.openapi.go --output-model-name-file zz_generated.model_name.go \
    --report-filename "${ROOT}/hack/openapi-violations.list" \
    "${readonly[@]/#/--readonly-pkg=}" "${versioned[@]}" "${readonly[@]}"
}

generate_clients() {
  step "apply configurations, clientset, listers, informers"
  local out=${ROOT}/${GENERATED} pkg=${MODULE}/${GENERATED}
  mapfile -t versioned < <(packages "${VERSIONED[@]}")
  rm -rf "${out}"/{applyconfiguration,clientset,listers,informers}
  applyconfiguration-gen --go-header-file "${BOILERPLATE}" --output-dir "${out}/applyconfiguration" --output-pkg "${pkg}/applyconfiguration" "${versioned[@]}"
  client-gen --go-header-file "${BOILERPLATE}" --output-dir "${out}/clientset" --output-pkg "${pkg}/clientset" --clientset-name versioned \
    --apply-configuration-package "${pkg}/applyconfiguration" --input-base "" --input "$(IFS=,; echo "${versioned[*]}")"
  lister-gen --go-header-file "${BOILERPLATE}" --output-dir "${out}/listers" --output-pkg "${pkg}/listers" "${versioned[@]}"
  informer-gen --go-header-file "${BOILERPLATE}" --output-dir "${out}/informers" --output-pkg "${pkg}/informers" \
    --versioned-clientset-package "${pkg}/clientset/versioned" --listers-package "${pkg}/listers" "${versioned[@]}"
}

cd "${ROOT}"
install_protoc
build_generators
generate_helpers
generate_protobuf
generate_openapi
generate_clients
step "done"
