#pragma once

#include "machine/cpu/tile/instruction_set.hpp"

namespace megamoe::cpu {

/// Bytes a second that `threads` threads read from memory together: each walks a buffer of its own,
/// far larger than the caches.
double measure_read_rate(int threads);

/// FLOPs a second of `threads` threads that multiply and add on registers with what the set has for
/// it.
double measure_flop_rate(int threads, InstructionSet set);

}  // namespace megamoe::cpu
