#!/usr/bin/env bash
# Installs the Debian or Ubuntu packages that are missing; with none missing it does nothing.
# usage: scripts/deps.sh [build] [test] [bench] [check]        (no word: build)
set -euo pipefail

# package              why
build_packages="
g++                    compiles it: C++20
cmake                  configures it: 3.25 or later
ninja-build            runs the build
libhwy-dev             SIMD of the tile kernel, chosen at run time
libcli11-dev           the command line
nlohmann-json3-dev     headers of safetensors files, --json
"
test_packages="
libgtest-dev           the test framework
libgmock-dev           its CMake package names it
python3                the structural checks and the tests of the command line
"
bench_packages="
libbenchmark-dev       micro-benchmarks
"
check_packages="
clang                  a second compiler's opinion, under clang-tidy
clang-format           the layout of the source
clang-tidy             the checks of .clang-tidy
"

installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

missing=()
for group in "${@:-build}"; do
  list="${group}_packages"
  [ -n "${!list:-}" ] || { echo "deps.sh: no group is named $group; build, test, bench and check are" >&2; exit 2; }
  while read -r package why; do
    if [ -z "$package" ] || installed "$package"; then continue; fi
    printf 'missing: %-20s %s\n' "$package" "$why"
    missing+=("$package")
  done <<<"${!list}"
done
[ ${#missing[@]} -gt 0 ] || exit 0

if ! command -v apt-get >/dev/null; then
  echo "deps.sh: this system has no apt-get; please install the packages above in its own way" >&2
  exit 1
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "deps.sh: installing needs root, and there is no sudo" >&2; exit 1; }
  as_root=(sudo)
fi
apt() { "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 "$@"; }
apt update
apt install -y --no-install-recommends "${missing[@]}" >/dev/null
