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
  function number_before(word,   i) { # the field in front of `word`, 0 if there is none
    for (i = 2; i <= NF; ++i) if (index($i, word) == 1) return $(i - 1) + 0
    return 0
  }
  function refuse(what, value, bound) {
    printf "check_ptxas.sh: %s: %s, %d; the bound is %d\n", kernel, what, value, bound > "/dev/stderr"
    failed = 1
  }
  /Compiling entry function/ { split($0, quoted, "\047"); kernel = quoted[2]; spilled = 0 }
  /bytes stack frame/ {
    gsub(",", "")
    stack = $1 + 0
    spilled += $5 + $9
  }
  /ptxas info *: Used/ && kernel != "" {
    gsub(",", "")
    used = number_before("registers")
    static = number_before("smem") == 0 ? 0 : 0
    for (i = 2; i <= NF; ++i) if ($i == "smem") static = $(i - 2) + 0
    printf "%s: %d registers, %d bytes of stack, %d spilled, %d of static shared memory\n", kernel, used, stack, spilled, static
    if (spilled > 0) refuse("bytes of spilled registers", spilled, 0)
    if (used > most_registers) refuse("registers of a thread", used, most_registers)
    if (static > most_shared) refuse("bytes of static shared memory", static, most_shared)
    kernel = ""
  }
  END { exit failed }
' "$log"
