#include "machine/cpu/tile/wide_product.hpp"

#include <cmath>
#include <cstring>

#include "machine/cpu/tile/pool_row.hpp"
#include "numerics/bfloat16.hpp"
#include "numerics/exponential.hpp"
#include "numerics/float4.hpp"

namespace megamoe::cpu {
namespace {

constexpr int kWordsPerGroup = kGroupSize / 8;

// sums[r] = tokens . weights of row r, over one group, codes without their scale.
void multiply_group(const std::uint8_t* codes, const float* tokens, float* sums) {
  for (int row = 0; row < kPanelRows; ++row)
    sums[row] = 0;
  for (int word = 0; word < kWordsPerGroup; ++word) {
    for (int row = 0; row < kPanelRows; ++row) {
      std::uint32_t nibbles = 0;
      std::memcpy(&nibbles, codes + 4 * (word * kPanelRows + row), sizeof nibbles);
      for (int pair = 0; pair < 4; ++pair) {
        const auto even = static_cast<std::uint8_t>((nibbles >> (4 * pair)) & 15U);
        const auto odd = static_cast<std::uint8_t>((nibbles >> (4 * pair + 16)) & 15U);
        const float* values = tokens + 8 * word + 2 * pair;
        sums[row] += values[1] * to_float(Float4E2M1{odd});
        sums[row] += values[0] * to_float(Float4E2M1{even});
      }
    }
  }
}

// Exponents of two scales reach from -254 to 254, beyond one fp32: two factors. Where the first
// product overflows or loses bits, the second would have done so on its own.
float scaled(float value, int exponent) {
  const int half = exponent / 2;
  return value * power_of_two(half) * power_of_two(exponent - half);
}

}  // namespace

void multiply_wide(const Panel& panel, const std::byte* row, int k, float* sums) {
  for (int lane = 0; lane < kPanelRows; ++lane)
    sums[lane] = 0;
  for (int group = 0; group < k / kGroupSize; ++group) {
    std::uint16_t bits[kGroupSize];
    std::memcpy(bits, row + static_cast<std::size_t>(group) * sizeof bits, sizeof bits);
    float tokens[kGroupSize];
    for (int i = 0; i < kGroupSize; ++i)
      tokens[i] = to_float(Bfloat16{bits[i]});
    float products[kPanelRows];
    multiply_group(
        panel.codes + static_cast<std::size_t>(group) * kCodeBytesPerGroup, tokens, products);
    const int token_exponent = remaining_exponent(Ue8m0{row_scales(row, k)[group]});
    const std::uint8_t* shifts = panel.shifts + group * kPanelRows;
    for (int lane = 0; lane < kPanelRows; ++lane)
      sums[lane] +=
          scaled(products[lane], token_exponent + panel.header->exponent[lane] + shifts[lane]);
  }
  for (int lane = 0; lane < kPanelRows; ++lane)
    if (std::isnan(panel.header->scale[lane])) sums[lane] = panel.header->scale[lane];
}

}  // namespace megamoe::cpu
