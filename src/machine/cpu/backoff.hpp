#pragma once

#include <cstdint>

namespace megamoe::cpu {

/// Between two vain polls, `polls` of them so far: spins briefly (the other side is often a few
/// hundred nanoseconds away), then gives up its time slice, then sleeps ever longer, so that more
/// threads than cores don't burn the cores that the awaited thread needs.
void back_off(int polls);

std::int64_t monotonic_ns();

}  // namespace megamoe::cpu
