#pragma once

#include "machine/cpu/tile/tile_functions.hpp"

namespace megamoe::cpu {

using MultiplyFunction = void (*)(const PanelProduct& product, TileScratch& scratch);

// The product by vdpbf16ps, which Highway 1.0 does not use; null where the compiler can't make it.
MultiplyFunction avx512_bf16_product();

// Its ceiling: TileFunctions::multiply_registers, and the FLOPs of its rounds.
float multiply_bf16_registers(int rounds);
inline constexpr int kBf16PeakSums = 12;  // more than a dot product's latency, in instructions
inline constexpr double kBf16FlopsOfRound = 4.0 * 16 * kBf16PeakSums;

}  // namespace megamoe::cpu
