#!/bin/sh
# Rank processes on two Hopper cards, through NCCL windows: the executable as a user meets it.
#   tests/device/run_two_cards.sh [megamoe]     (default: build/device/tools/cli/megamoe)
# Prints a line a check; the exit code is the number of those that failed. Skips where there are fewer than two cards.
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
executable=${1:-$root/build/device/tools/cli/megamoe}
cards=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU')
if [ "$cards" -lt 2 ]; then
  echo "skipped: nvidia-smi shows $cards cards here; this needs two"
  exit 0
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 1
failed=0

megamoe() {
  timeout 60 "$executable" "$@"
}

check() { # check <name> <command>...: the command's success
  name=$1
  shift
  began=$(date +%s.%N)
  if "$@" >log 2>&1; then verdict=good; else
    verdict="FAILED ($?)"
    failed=$((failed + 1))
  fi
  printf '%-44s %-12s %5.1f s\n' "$name" "$verdict" "$(echo "$(date +%s.%N) $began" | awk '{print $1 - $2}')"
  [ "$verdict" = good ] || head -c 2000 log
}
forward() { # forward <output> <flag>...
  to=$1
  shift
  megamoe forward --weights w --input x --output "$to" "$@"
}
refused() { # refused <exit code> <words> <command>...
  code=$1 words=$2
  shift 2
  "$@" >said 2>&1
  got=$?
  cat said
  [ "$got" = "$code" ] && grep -q "$words" said
}
launched() { # launched <flags of rank 0> <flags of rank 1> <output> <both exit codes>: ranks by torchrun's variables
  port=$((20000 + $$ % 20000))
  RANK=0 LOCAL_RANK=0 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT=$port \
    forward "$3" --machine sm90 --launch environment $1 >rank0 2>&1 &
  first=$!
  RANK=1 LOCAL_RANK=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=localhost MASTER_PORT=$port \
    forward "$3" --machine sm90 --launch environment $2 >rank1 2>&1
  second=$?
  wait "$first"
  both="$? $second"
  cat rank0 rank1
  [ "$both" = "$4" ]
}
disagreement() {
  launched "--capacity 64" "--capacity 128" never "2 2" &&
    grep -q "disagree on capacity of the layer: 64 on rank 0, 128 on rank 1" rank0 && cmp rank0 rank1
}
own_cards() { # each process sees one card, the same one
  port=$((20001 + $$ % 20000))
  CUDA_VISIBLE_DEVICES=0 RANK=1 WORLD_SIZE=2 MASTER_PORT=$port forward never --machine sm90 --launch environment >rank1 2>&1 &
  CUDA_VISIBLE_DEVICES=0 RANK=0 WORLD_SIZE=2 MASTER_PORT=$port forward never --machine sm90 --launch environment >rank0 2>&1
  code=$?
  wait
  cat rank0 rank1
  [ "$code" = 3 ] && grep -q "ranks 0 and 1 are both on card" rank0
}
killed() { # one of two rank processes, while calls run
  "$executable" bench --machine sm90 --launch processes --ranks 2 --shape flash --experts 32 --tokens 2048 --calls 8000 --timeout-ms 20000 >said 2>&1 &
  parent=$!
  sleep "${SECONDS_BEFORE_THE_KILL:-8}"
  # No process is found by its name: the parent's last child is a rank. It has none yet, or no longer, if it failed.
  victim=$(tr ' ' '\n' 2>/dev/null <"/proc/$parent/task/$parent/children" | grep . | tail -1)
  began=$(date +%s.%N)
  [ -z "$victim" ] || kill -9 "$victim"
  wait "$parent"
  code=$?
  echo "the rest ended $(echo "$(date +%s.%N) $began" | awk '{print $1 - $2}') s later with $code:"
  cat said
  [ "$code" = 4 ] && grep -q "was killed by signal 9" said && grep -q "rank 0.*rank 1 died" said
}

check "a layer and 96 tokens of 2 ranks" megamoe generate --shape 1024,512,32,4 --tokens 96 --ranks 2 --seed 7 --weights w --input x
check "the same for 4 ranks" megamoe generate --shape 1024,512,32,4 --tokens 96 --ranks 4 --seed 7 --input x4
check "1 process, 2 ranks on two cards" forward y2 --machine sm90 --ranks 2
check "2 processes" forward p2 --machine sm90 --ranks 2 --launch processes --verify
cat log
check "the same bits as 2 ranks of 1 process" cmp y2 p2
check "2 processes, the CPU machine" forward c2 --machine cpu --ranks 2 --launch processes
check "2 processes against fp64, from the file" megamoe check --numerics fast --weights w --input x --output p2
check "2 processes by torchrun's variables" launched "" "" t2 "0 0"
check "the same bits" cmp y2 t2
check "a disagreement has both values" disagreement
check "4 processes on 2 cards are refused" refused 3 "ranks is 4, and there are 2 cards" \
  megamoe forward --weights w --input x4 --output never --machine sm90 --ranks 4 --launch processes
check "2 launched ranks on one card are refused" own_cards
check "a killed rank" killed
cat said
echo "$failed failed"
exit "$failed"
