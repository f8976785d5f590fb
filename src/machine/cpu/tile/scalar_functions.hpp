#pragma once

#include "machine/cpu/tile/tile_functions.hpp"

namespace megamoe::cpu {

// Plain C++ over the formulas of numerics: for computers without any of the other sets, and what
// those are held against.
const TileFunctions& scalar_functions();

}  // namespace megamoe::cpu
