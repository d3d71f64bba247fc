#!/usr/bin/env bash
# Copyright The sandbox-apiserver Authors
# SPDX-License-Identifier: Apache-2.0
#
# Usage: verify.sh
# Regenerates all generated code in place and fails if that changed anything; then lints. It is for a clean checkout: what was changed
# there before is taken for a difference too.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

readonly GENERATED=(pkg hack/openapi-violations.list)

cd "${ROOT}"
track "generating" hack/update-codegen.sh
step "comparing"
git diff --exit-code -- "${GENERATED[@]}" || die "generated code was not up to date: commit what \"make generate\" changes"
untracked=$(git ls-files --others --exclude-standard -- "${GENERATED[@]}")
[[ -z ${untracked} ]] || die "generated code is not committed: ${untracked}"
hack/lint.sh
