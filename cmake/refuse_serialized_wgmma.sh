#!/bin/sh
# Runs a compilation and fails it on the notes C7510 to C7519: ptxas says there, as mere information, that it puts a
# wait after every wgmma, which costs most of the machine.
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
"$@" 2>"$log"
status=$?
cat "$log" >&2
[ "$status" -eq 0 ] || exit "$status"
! grep -q '(C751[0-9])' "$log"
