#!/usr/bin/env bash
# Copyright The sandbox-apiserver Authors
# SPDX-License-Identifier: Apache-2.0
#
# Usage: lint.sh
# Runs go vet and golangci-lint over both modules, and checks licence headers and shell scripts. All findings are shown
# before it fails.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# sources PATTERN...: tracked and new files, less those that a tool writes and those that tests read.
sources() { git ls-files --cached --others --exclude-standard -- "$@" | grep -vE '(^|/)(zz_generated|generated\.)|^pkg/generated/|/testdata/'; }

# headers: files without the two lines that say whose they are.
headers() {
  local file missing=0
  while read -r file; do
    [[ -s ${file} ]] || continue
    if [[ $(head -4 "${file}" | grep -cE '^(//|#) (Copyright The sandbox-apiserver Authors|SPDX-License-Identifier: Apache-2\.0)$') -ne 2 ]]; then
      echo "${file}: no licence header"
      missing=1
    fi
  done < <(sources '*.go' '*.sh' '*.yaml' '*.yml' Makefile .ci/run)
  return "${missing}"
}

# vet MODULE_DIR
vet() { go vet -C "$1" ./...; }

# golangci MODULE_DIR
golangci() { (cd "$1" && "${TOOLS}/golangci-lint" run --config "${ROOT}/.golangci.yml" ./...); }

build_golangci() {
  mkdir -p "${TOOLS}"
  go build -C hack/tools -o "${TOOLS}/golangci-lint" github.com/golangci/golangci-lint/v2/cmd/golangci-lint
}

scripts() {
  local files
  mapfile -t files < <(sources 'hack/*.sh' .ci/run)
  shellcheck --external-sources --source-path=SCRIPTDIR "${files[@]}"
}

failed=()
check() { track "$1" "${@:2}" || failed+=("$1"); }

cd "${ROOT}"
require_command shellcheck shellcheck
track "building golangci-lint" build_golangci
check "licence headers" headers
check "shell scripts" scripts
for module in . test/localcluster; do
  check "go vet in ${module}" vet "${module}"
  check "golangci-lint in ${module}" golangci "${module}"
done
((${#failed[@]} == 0)) || die "failed: $(printf '%s; ' "${failed[@]}")"
