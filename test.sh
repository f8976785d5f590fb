#!/usr/bin/env bash
# Installs what is missing, builds everything into build/test and runs every test that needs no GPU.
# Words after it go to ctest:  ./test.sh -L unit   ./test.sh -R ring
set -euo pipefail
cd "$(dirname "$0")"
jobs=$(nproc)

scripts/deps.sh build test
echo "building into build/test, $jobs at a time"
# A newer compiler may warn of more; that is our business in CI, not yours here. Debug information for backtraces
# alone (-g1) takes a third less to compile.
mkdir -p build
cmake --preset host -B build/test -DMEGAMOE_WARNINGS_AS_ERRORS="${CI:-OFF}" \
  -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O2 -g1 -DNDEBUG" >build/configure.log 2>&1 ||
  { cat build/configure.log; exit 1; }
cmake --build build/test --parallel "$jobs"
ctest --test-dir build/test --output-on-failure --no-tests=error --parallel "$jobs" -LE '^device$' "$@"
