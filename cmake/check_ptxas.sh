#!/bin/sh
# Runs a compilation and holds what ptxas says about it, of each kernel and of the unit:
#   check_ptxas.sh <most registers of a thread> <most bytes of static shared memory> <command>...
# Spilled registers, notes C7510 to C7519 (ptxas puts a wait after every wgmma, which costs most of the machine) and
# numbers above the bounds are errors; each kernel's numbers are printed in one line. The command compiles with
# -Xptxas=-v.
registers=$1
shared=$2
shift 2
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
"$@" 2>"$log"
status=$?
grep -v -e '^ptxas info *: [0-9]* bytes gmem' -e '^ptxas info *: Compiling' -e '^ptxas info *: Function properties' \
  -e '^ptxas info *: Used' -e '^ptxas info *: Compile time' -e '^ *[0-9]* bytes stack frame' "$log" >&2
[ "$status" -eq 0 ] || exit "$status"
if grep -q '(C751[0-9])' "$log"; then
  echo "check_ptxas.sh: ptxas serializes wgmma (the note C751x above)" >&2
  exit 1
fi
awk -v most_registers="$registers" -v most_shared="$shared" '
  function refuse(what, value, bound) {
    printf "check_ptxas.sh: %s: %d %s; the bound is %d\n", kernel, value, what, bound
    failed = 1
  }
  /Compiling entry function/ { split($0, quoted, "\047"); kernel = quoted[2] }
  /bytes stack frame/ { stack = $1; spilled = $5 + $9 } # N bytes stack frame, N bytes spill stores, N bytes spill loads
  /ptxas info *: Used/ && kernel != "" {
    static = 0
    for (i = 2; i < NF; ++i) {
      if ($(i + 1) ~ /^registers/) used = $i
      if ($i == "bytes" && $(i + 1) ~ /^smem/) static = $(i - 1)
    }
    printf "%s: %d registers, %d bytes of stack, %d of static shared memory\n", kernel, used, stack, static
    if (spilled > 0) refuse("bytes of spilled registers", spilled, 0)
    if (used + 0 > most_registers + 0) refuse("registers of a thread", used, most_registers)
    if (static + 0 > most_shared + 0) refuse("bytes of static shared memory", static, most_shared)
    kernel = ""
  }
  END { exit failed }
' "$log" >&2
