#pragma once

#include "machine/cpu/tile/tile_functions.hpp"

namespace megamoe::cpu {

using MultiplyFunction = void (*)(const PanelProduct& product, TileScratch& scratch);

// The product by vdpbf16ps, which Highway 1.0 does not use; null where the compiler can't make it.
MultiplyFunction avx512_bf16_product();

}  // namespace megamoe::cpu
