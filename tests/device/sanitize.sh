#!/bin/sh
# One tool of compute-sanitizer over the small calls: tests/device/sanitize.sh <memcheck|racecheck|synccheck> <tests>.
# Any finding fails. Exit code 77 where the machine's runtime doesn't let the tool in.
#
# racecheck knows mbarriers and the copy engine, but takes every word that is stored with release and loaded with
# acquire for a race. The test prints where those words lie; hazards there are counted and dismissed, all others fail.
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

set -- --tool "$tool" --error-exitcode 9 --print-limit 1000000
if [ "$tool" = racecheck ]; then
  set -- "$@" --racecheck-report hazard
fi
"$sanitizer" "$@" "$tests" --gtest_filter='*SmallCall*' >"$log" 2>&1
status=$?
if grep -q 'Device not supported' "$log"; then
  echo "skipped: compute-sanitizer does not support the device in this machine's runtime"
  exit 77
fi
if [ "$tool" != racecheck ]; then
  cat "$log"
  exit "$status"
fi

# Shared memory starts with a KiB of the system's.
known=$(sed -n 's/^  synchronising words: //p' "$log" | tr ' ' '\n' | while read -r word; do
  printf '0x%x\n0x%x\n' "$((word))" "$((word + 1024))"
done | sort -u)
grep -v '^=========' "$log"
hazards=$(sed -n 's/.*hazard detected at __shared__ \(0x[0-9a-f]*\).*/\1/p' "$log" | sort | uniq -c)
echo "$hazards" | while read -r count address; do
  [ -n "$address" ] || continue
  if echo "$known" | grep -qx "$(printf '0x%x' "$((address / 4 * 4))")"; then
    echo "dismissed: $count hazards at $address, a word that orders by release and acquire"
  else
    echo "HAZARDS: $count at $address"
    grep -A 6 "at __shared__ $address" "$log" | head -14
  fi
done | tee "$log.verdict"
others=$(grep -c '^HAZARDS' "$log.verdict")
rm -f "$log.verdict"
tail -1 "$log"
if [ "$others" -ne 0 ]; then exit 9; fi
# Errors that are no hazards.
if grep '^========= ' "$log" | grep -v -e hazard -e Thread -e COMPUTE-SANITIZER | grep -q Error; then exit 9; fi
grep -q 'RACECHECK SUMMARY' "$log"
