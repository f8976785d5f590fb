#!/usr/bin/env bash
# Writes the recorded plans anew from a build with tests (default build/test). Look at `git diff tests/golden` before
# it is committed: each line there is a plan that someone will get.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=${1:-build/test}
cmake --build "$build" --target plan_test
mkdir -p tests/golden/plan
MEGAMOE_UPDATE_GOLDEN=1 "$build/tests/unit/plan/plan_test" --gtest_filter='*Golden*' --gtest_brief=1
git diff --stat -- tests/golden
