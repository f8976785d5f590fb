#pragma once

#include "emulation/host/emulator.hpp"
#include "machine/sm100/launch.hpp"

namespace megamoe::sm100 {

// The kernel of a tile size in its emulated form, loaded by a rank's emulator: once for each rank
// and tile size. Throws Error(kInternal) for a tile size that none exists for. A
// kernel that this build leaves out is null.
KernelInstance emulated_instance_of(emulation::Emulator& emulator, int block_m);

// Whether this build has it.
bool has_emulated_instance(int block_m);

}  // namespace megamoe::sm100
