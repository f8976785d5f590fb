#!/bin/sh
# One tool of compute-sanitizer over the small calls: tests/device/sanitize.sh <memcheck|racecheck|synccheck> <tests>.
# Any finding fails; racecheck's are judged first (racecheck_verdict.py). Exit code 77 where the machine's runtime
# doesn't let the tool in.
set -u
tool=$1
tests=$2
sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
if [ ! -x "$sanitizer" ]; then
  echo "skipped: there is no compute-sanitizer here"
  exit 77
fi
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
"$sanitizer" --tool "$tool" --error-exitcode 9 --print-limit 10000 "$tests" --gtest_filter='*SmallCall*' >"$log" 2>&1
status=$?
if grep -q 'Device not supported' "$log"; then
  echo "skipped: compute-sanitizer does not support the device in this machine's runtime"
  exit 77
fi
if [ "$tool" != racecheck ]; then
  cat "$log"
  exit "$status"
fi
grep -v -e 'Race reported' -e 'access at' -e '^========= $' "$log"
# 9 is the tool's own; any other failure is the test's.
if [ "$status" -ne 0 ] && [ "$status" -ne 9 ]; then exit "$status"; fi
if ! grep -q 'RACECHECK SUMMARY' "$log" || grep -q '\[  FAILED' "$log"; then exit 1; fi
python3 "$(dirname "$0")/racecheck_verdict.py" "$log" "$tests"
