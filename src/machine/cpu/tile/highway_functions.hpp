#pragma once

#include "machine/cpu/tile/tile_functions.hpp"

namespace megamoe::cpu {

// Those sets that Highway compiles; null for any other.
const TileFunctions* highway_functions(InstructionSet set);

}  // namespace megamoe::cpu
