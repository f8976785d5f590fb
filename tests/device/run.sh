#!/bin/sh
# Everything that needs a Hopper card, in one go, on a machine that has one: tests/device/run.sh [cmake arguments...]
#
#   BUILD=folder         where to build; build/device by default
#   EXECUTABLES=folder   sm90_device_test, layer_device_test and co_residence_probe lie there, built before: nothing is
#                        built
#   GTEST_SOURCE=folder  GoogleTest's source, where it is not installed (Debian: /usr/src/googletest). Other packages
#                        that are missing: -DFETCHCONTENT_SOURCE_DIR_HWY=folder, _CLI11, _NLOHMANN_JSON
#   MEASURE=1            also builds the measurements, and prints them
#
# One line of ctest's a suite: a process for each case would spend its time on making contexts. Without a GPU it says
# so, runs nothing and succeeds.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=${BUILD:-"$root/build/device"}

if ! nvidia-smi -L >/dev/null 2>&1; then
  echo "skipped: nvidia-smi finds no GPU here, so no device test was built or run"
  exit 0
fi

if [ -z "${EXECUTABLES:-}" ]; then
  if [ -n "${GTEST_SOURCE:-}" ]; then
    set -- "-DFETCHCONTENT_SOURCE_DIR_GTEST=$GTEST_SOURCE" "$@"
  fi
  cmake -S "$root" -B "$build" -DCMAKE_BUILD_TYPE=Release -DMEGAMOE_CUDA=ON -DMEGAMOE_BUILD_TESTS=ON \
    -DMEGAMOE_SM90_MEASURE="${MEASURE:-0}" "$@"
  cmake --build "$build" -j "$(nproc)" --target sm90_device_test layer_device_test co_residence_probe
  EXECUTABLES=$build/tests/device
  cp "$build/tests/layer_device/layer_device_test" "$EXECUTABLES"
fi
tests=$EXECUTABLES/sm90_device_test
layers=$EXECUTABLES/layer_device_test

suites=$(mktemp -d)
trap 'rm -rf "$suites"' EXIT
{
  for executable in "$tests" "$layers"; do
    for suite in $("$executable" --gtest_list_tests | grep '^[A-Z][A-Za-z0-9/]*\.'); do
      name=${suite%.}
      # Suites with machines as parameters: a test each, since the emulation takes its time.
      machines=$("$executable" --gtest_list_tests "--gtest_filter=$suite*" | sed -n 's,^  [A-Za-z0-9_]*/\([^ ]*\).*,\1,p' |
        grep -E '^sm(90|100)_' | sort -u)
      for machine in ${machines:-.}; do
        case $machine in
          .) filter="$suite*" test=$name limit=120 ;;
          *_emulated_*) filter="$suite*/$machine" test=$name/$machine limit=600 ;;
          *) filter="$suite*/$machine" test=$name/$machine limit=120 ;;
        esac
        echo "add_test($test \"$executable\" \"--gtest_filter=$filter\")"
        echo "set_tests_properties($test PROPERTIES TIMEOUT $limit SKIP_REGULAR_EXPRESSION \"these kernels are for|is not in this build\")"
      done
    done
  done
  for tool in memcheck synccheck racecheck; do
    echo "add_test(sanitizer/$tool sh \"$here/sanitize.sh\" $tool \"$tests\")"
    echo "set_tests_properties(sanitizer/$tool PROPERTIES TIMEOUT 120 SKIP_RETURN_CODE 77)"
  done
} >"$suites/CTestTestfile.cmake"

"$EXECUTABLES/co_residence_probe"
status=0
ctest --test-dir "$suites" --output-on-failure || status=$?
echo "what was measured on the way:"
grep -E '^(\[ RUN|  [a-z])|^(dismissed|skipped):' "$suites/Testing/Temporary/LastTest.log" | grep -B1 -E '^ |^[a-z]' |
  grep -v '^--' || true

if [ "${MEASURE:-0}" = 1 ]; then
  cmake --build "$build" -j "$(nproc)" --target sm90_measure
  "$build/tests/device/sm90_forward_bench"
  for bench in "$build"/tests/device/sm90_linears_bench_kFloat8_*[0-9]; do
    "$bench"
  done
fi
exit "$status"
