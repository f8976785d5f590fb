#!/usr/bin/env bash
# Installs what is missing, builds, makes a layer of realistic shape with random weights, runs it on four rank
# processes and compares every output with the reference. Needs no GPU.
# Words after it go to `megamoe forward`:  ./run.sh --workers 2
set -euo pipefail
cd "$(dirname "$0")"
jobs=$(nproc)

scripts/deps.sh build
echo "building into build/release, $jobs at a time"
mkdir -p build
cmake --preset release >build/configure.log 2>&1 || { cat build/configure.log; exit 1; }
cmake --build build/release --parallel "$jobs"
megamoe=$(find "$PWD/build/release" -type f -name megamoe -perm -u+x -print -quit)

# Qwen3-30B-A3B's widths and top-8 with a quarter of its 128 experts: 80 MB of weights, 256 tokens over four ranks.
layer=build/layer
mkdir -p "$layer"
"$megamoe" generate --shape qwen3-30b --experts 32 --tokens 256 --ranks 4 --seed 1 \
  --weights "$layer/weights.safetensors" --input "$layer/input.safetensors"
"$megamoe" forward --weights "$layer/weights.safetensors" --input "$layer/input.safetensors" \
  --output "$layer/output.safetensors" --ranks 4 --launch processes --verify "$@"
