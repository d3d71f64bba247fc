# Copyright The sandbox-apiserver Authors
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# What the scripts in this directory share: places, and progress that is never silent for long. To be sourced.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
OUTPUT=${ROOT}/_output
BIN=${OUTPUT}/bin
TOOLS=${OUTPUT}/tools
# One clock for a script and all the scripts that it calls, in seconds.
export SANDBOX_STARTED=${SANDBOX_STARTED:-${EPOCHREALTIME/,/.}}
export OUTPUT BIN TOOLS
export GOTOOLCHAIN=local

# elapsed: the seconds on that clock.
elapsed() {
  local now=${EPOCHREALTIME/,/.} tenths
  tenths=$(((${now/./} - ${SANDBOX_STARTED/./}) / 100000))
  printf '%d.%d' "$((tenths / 10))" "$((tenths % 10))"
}

# step TEXT: one line of progress, in the form that localcluster uses.
step() { printf '[%7s] %s\n' "$(elapsed)s" "$*" >&2; }

die() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# require_root WHAT: ends the script unless it runs as root on Linux.
require_root() {
  [[ $(uname -s) == Linux && ${EUID} -eq 0 ]] || die "$1 needs root on Linux, for namespaces, mounts and network links"
}

# track TEXT COMMAND...: runs a command that may be silent for minutes, with a line every ten seconds. The command must not be a
# function that relies on "set -e", which has no effect here.
track() {
  local text=$1 status=0 ticker
  shift
  step "${text}"
  # The timeout of read, instead of sleep, leaves no process behind.
  (
    exec {never}<> <(:)
    while kill -0 $$ 2>/dev/null; do
      read -rt 10 -u "${never}" || step "${text} … still at it"
    done
  ) &
  ticker=$!
  "$@" || status=$?
  kill "${ticker}" 2>/dev/null
  wait "${ticker}" 2>/dev/null || true
  return "${status}"
}

# require_command COMMAND PACKAGE...: installs Debian packages unless the command is there.
require_command() {
  command -v "$1" >/dev/null && return
  require_root "installing ${*:2}"
  track "installing ${*:2}" apt-get update -qq
  DEBIAN_FRONTEND=noninteractive track "installing ${*:2}" apt-get install -y -qq --no-install-recommends "${@:2}" >/dev/null
}

# kube COMMAND...: kubectl with the administrator's rights on the cluster at hand.
kube() { "${BIN}/kubectl" --kubeconfig "${KUBECONFIG}" "$@"; }
