#include "machine/cpu/tile/wide_product.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "machine/cpu/tile/pool_row.hpp"
#include "numerics/bfloat16.hpp"
#include "numerics/exponential.hpp"
#include "numerics/float4.hpp"

namespace megamoe::cpu {
namespace {

using GroupValues = float[kGroupSize][kPanelRows];

// weights[k][row] of one group, without their scales.
void decode_group(const std::uint8_t* codes, GroupValues& weights) {
  for (int word = 0; word < kGroupSize / 8; ++word) {
    for (int row = 0; row < kPanelRows; ++row) {
      std::uint32_t nibbles = 0;
      std::memcpy(&nibbles, codes + 4 * (word * kPanelRows + row), sizeof nibbles);
      for (int i = 0; i < 8; ++i) {
        const int shift = 4 * (i / 2) + 16 * (i % 2);
        const Float4E2M1 code{static_cast<std::uint8_t>((nibbles >> shift) & 15U)};
        weights[8 * word + i][row] = to_float(code);
      }
    }
  }
}

// products[r] = tokens . weights of row r, over one group.
void multiply_group(const GroupValues& weights, const std::byte* tokens, float* products) {
  Bfloat16 values[kGroupSize];
  std::memcpy(values, tokens, sizeof values);
  for (int row = 0; row < kPanelRows; ++row)
    products[row] = 0;
  for (int k = 0; k < kGroupSize; ++k) {
    const float value = to_float(values[k]);
    for (int row = 0; row < kPanelRows; ++row)
      products[row] += value * weights[k][row];
  }
}

// Exponents of two scales reach from -254 to 254, beyond one fp32: two factors. Where the first
// product overflows or loses bits, the second would have done so on its own.
float scaled(float value, int exponent) {
  const int half = exponent / 2;
  return value * power_of_two(half) * power_of_two(exponent - half);
}

}  // namespace

void multiply_wide(const WideProduct& product) {
  if (product.wanted.empty()) return;
  const PanelHeader& header = *product.panel.header;
  const auto sums_of = [&product](int row) {
    return product.sums + static_cast<std::size_t>(row) * TileScratch::kSumStride;
  };
  for (const int row : product.wanted)
    std::fill_n(sums_of(row), kPanelRows, 0.0F);
  for (int group = 0; group < product.k / kGroupSize; ++group) {
    const auto at = static_cast<std::size_t>(group);
    GroupValues weights;
    decode_group(product.panel.codes + at * kCodeBytesPerGroup, weights);
    const std::uint8_t* shifts = product.panel.shifts + at * kShiftBytesPerGroup;
    for (const int row : product.wanted) {
      const std::byte* tokens =
          product.rows.data + static_cast<std::size_t>(row) * product.rows.stride;
      float products[kPanelRows];
      multiply_group(weights, tokens + at * sizeof(Bfloat16) * kGroupSize, products);
      const int exponent = remaining_exponent(Ue8m0{row_scales(tokens, product.k)[group]});
      float* sums = sums_of(row);
      for (int lane = 0; lane < kPanelRows; ++lane)
        sums[lane] += scaled(products[lane], exponent + header.exponent[lane] + shifts[lane]);
    }
  }
  for (const int row : product.wanted)
    for (int lane = 0; lane < kPanelRows; ++lane)
      if (std::isnan(header.scale[lane])) sums_of(row)[lane] = header.scale[lane];
}

}  // namespace megamoe::cpu
