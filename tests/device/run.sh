#!/bin/sh
# Builds the device code and its tests on a machine with a GPU, and runs them: tests/device/run.sh [build folder].
# With MEASURE=1 it also builds the measurements and prints them.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:-"$root/build/device"}
jobs=$(nproc)
cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release -DMEGAMOE_CUDA=ON -DMEGAMOE_BUILD_TESTS=ON \
  -DMEGAMOE_SM90_MEASURE="${MEASURE:-0}"
cmake --build "$build" -j "$jobs" --target sm90_device_test machine_sm90_test
ctest --test-dir "$build" --output-on-failure -R '^(sm90_device_test|machine_sm90_test)/'
if [ "${MEASURE:-0}" = 1 ]; then
  cmake --build "$build" -j "$jobs" --target sm90_measure
  "$build/tests/device/sm90_forward_bench"
  for bench in "$build"/tests/device/sm90_linears_bench_kFloat8_*[0-9]; do
    "$bench"
  done
fi
