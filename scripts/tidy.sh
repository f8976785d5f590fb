#!/usr/bin/env bash
# clang-tidy over the host units of a configured build folder (default build/test), by the compilation database there.
# usage: scripts/tidy.sh [build folder] [regular expression of paths]
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build/test}
# Tests are held by the compiler's warnings, the sanitizers and tests/layering: GoogleTest's macros count as branches.
units=${2:-"^$PWD/(src|tools|bench)/.*\\.cc\$"}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# It echoes each command and counts suppressed warnings; only findings are of interest.
if run-clang-tidy -quiet -j "$(nproc)" -extra-arg=-Wno-unknown-warning-option -p "$build" "$units" >"$log" 2>&1; then
  echo "clang-tidy: no findings in $(grep -c "^clang-tidy" "$log") units"
else
  sed 's/\x1b\[[0-9;]*m//g' "$log" | grep -v -e '^clang-tidy' -e 'warnings generated\.$' -e '^Suppressed' -e '^$' || true
  exit 1
fi
