#!/usr/bin/env bash
# Formats the source; with --check it changes nothing and fails on what is not formatted.
set -euo pipefail
cd "$(dirname "$0")/.."
how=(-i)
[ "${1:-}" != --check ] || how=(--dry-run -Werror)
trees=()
for tree in include src tools tests bench examples; do [ ! -d "$tree" ] || trees+=("$tree"); done
find "${trees[@]}" -path '*/generated/*' -prune -o \
  \( -name '*.hpp' -o -name '*.h' -o -name '*.cc' -o -name '*.c' -o -name '*.cu' -o -name '*.cuh' \) -print0 |
  xargs -0r clang-format "${how[@]}"
