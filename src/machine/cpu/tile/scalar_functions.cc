#include "machine/cpu/tile/scalar_functions.hpp"

#include <algorithm>
#include <cstring>

#include "numerics/exponential.hpp"
#include "numerics/float4.hpp"
#include "numerics/float8.hpp"
#include "numerics/quantize.hpp"
#include "numerics/swiglu.hpp"

namespace megamoe::cpu {
namespace {

constexpr std::size_t kSumStride = TileScratch::kSumStride;

// weights[k][row] of one group, scaled relative to the row's least scale.
void decode_group(const Panel& panel, int group, float* weights) {
  const std::uint8_t* codes = panel.codes + static_cast<std::size_t>(group) * kCodeBytesPerGroup;
  for (int row = 0; row < kPanelRows; ++row) {
    const float scale =
        power_of_two(std::min<int>(panel.shifts[group * kPanelRows + row], kLargestFoldedShift));
    for (int word = 0; word < kGroupSize / 8; ++word) {
      std::uint32_t nibbles = 0;
      std::memcpy(&nibbles, codes + 4 * (word * kPanelRows + row), sizeof nibbles);
      for (int i = 0; i < 8; ++i) {
        const int shift = 4 * (i / 2) + 16 * (i % 2);
        const auto code = static_cast<std::uint8_t>((nibbles >> shift) & 15U);
        weights[(8 * word + i) * kPanelRows + row] = to_float(Float4E2M1{code}) * scale;
      }
    }
  }
}

// The order of summation of all sets: along K, within a pair the odd element first, as vdpbf16ps
// does.
void multiply_group(const float* weights, const std::byte* row, int group, float* sums) {
  Bfloat16 tokens[kGroupSize];
  std::memcpy(tokens, row + static_cast<std::size_t>(group) * sizeof tokens, sizeof tokens);
  for (int k = 0; k < kGroupSize; k += 2) {
    const float even = to_float(tokens[k]);
    const float odd = to_float(tokens[k + 1]);
    const float* pair = weights + k * kPanelRows;
    for (int lane = 0; lane < kPanelRows; ++lane)
      sums[lane] = (sums[lane] + odd * pair[kPanelRows + lane]) + even * pair[lane];
  }
}

void multiply(const PanelProduct& product, TileScratch& scratch) {
  auto* const weights = reinterpret_cast<float*>(scratch.weights);
  for (int index = 0; index < product.num_panels; ++index) {
    const Panel& panel = product.panels[index];
    float* sums = scratch.sums + index * kPanelRows;
    for (int row = 0; row < product.num_rows; ++row)
      std::fill_n(sums + static_cast<std::size_t>(row) * kSumStride, kPanelRows, 0.0F);
    for (int group = 0; group < product.k / kGroupSize; ++group) {
      decode_group(panel, group, weights);
      for (int row = 0; row < product.num_rows; ++row) {
        const auto at = static_cast<std::size_t>(row);
        multiply_group(
            weights, product.rows.data + at * product.rows.stride, group, sums + at * kSumStride);
      }
    }
    for (int row = 0; row < product.num_rows; ++row)
      for (int lane = 0; lane < kPanelRows; ++lane)
        sums[static_cast<std::size_t>(row) * kSumStride + static_cast<std::size_t>(lane)] *=
            panel.header->scale[lane];
  }
}

void store_group(const std::uint8_t* codes, Ue8m0 scale, int group, int k, std::byte* row) {
  const float factor = is_nan(scale)      ? to_float(scale)
                       : is_folded(scale) ? power_of_two(scale.exponent())
                                          : 1.0F;
  Bfloat16 values[kGroupSize];
  for (int i = 0; i < kGroupSize; ++i)
    values[i] = to_bfloat16(to_float(Float8E4M3{codes[i]}) * factor);
  std::memcpy(row + static_cast<std::size_t>(group) * sizeof values, values, sizeof values);
  row[row_scales_offset(k) + static_cast<std::size_t>(group)] = std::byte{scale.bits};
}

void store_row(const std::uint8_t* codes, const std::uint8_t* scales, int k, std::byte* row) {
  for (int group = 0; group < k / kGroupSize; ++group) {
    const std::uint8_t* group_codes = codes + group * kGroupSize;
    const bool is_zero = std::all_of(group_codes, group_codes + kGroupSize, [](std::uint8_t code) {
      return (code & 0x7F) == 0;
    });
    const Ue8m0 scale{scales[group]};
    store_group(group_codes, is_zero && !is_nan(scale) ? Ue8m0{} : scale, group, k, row);
  }
}

void finish_linear1(const Linear1Finish& finish) {
  for (int row = 0; row < finish.num_rows; ++row) {
    const float* sums = finish.sums + static_cast<std::size_t>(row) * kSumStride;
    float activated[kGroupSize];
    for (int i = 0; i < kGroupSize; ++i) {
      const int lane = i % kHalfPanelRows + i / kHalfPanelRows * kPanelRows;
      float gate = sums[lane];
      float up = sums[lane + kHalfPanelRows];
      if (finish.gate_bias != nullptr) {
        gate += finish.gate_bias[i];
        up += finish.up_bias[i];
      }
      activated[i] = gated_activation(to_float(to_bfloat16(gate)),
                                      to_float(to_bfloat16(up)),
                                      finish.routing_weights[row],
                                      finish.activation);
    }
    const QuantizedGroup group = quantize_group(activated);
    store_group(group.codes.data(),
                group.scale,
                finish.group,
                finish.k,
                finish.rows.data + static_cast<std::size_t>(row) * finish.rows.stride);
  }
}

void finish_linear2(const Linear2Finish& finish) {
  for (int row = 0; row < finish.num_rows; ++row) {
    const auto at = static_cast<std::size_t>(row);
    const float* sums = finish.sums + at * kSumStride;
    Bfloat16* output = finish.output + at * finish.output_stride;
    for (int lane = 0; lane < kPanelRows; ++lane) {
      float value = sums[lane];
      if (finish.bias != nullptr) value += finish.routing_weights[row] * finish.bias[lane];
      output[lane] = to_bfloat16(value);
    }
  }
}

constexpr int kChains = 8;  // more than a multiplication's latency, in instructions
constexpr double kFlopsOfRound = 2.0 * kChains;

float multiply_registers(int rounds) {
  float sums[kChains] = {1, 1, 1, 1, 1, 1, 1, 1};
  for (int i = 0; i < rounds; ++i) {
    for (float& sum : sums) {
      sum = sum * 0.5F + 0.5F;
      asm volatile("" : "+m"(sum));  // one at a time: this set has no vectors
    }
  }
  return sums[0];
}

}  // namespace

const TileFunctions& scalar_functions() {
  static constexpr TileFunctions kFunctions{.multiply = multiply,
                                            .finish_linear1 = finish_linear1,
                                            .finish_linear2 = finish_linear2,
                                            .store_row = store_row,
                                            .multiply_registers = multiply_registers,
                                            .flops_of_round = kFlopsOfRound};
  return kFunctions;
}

}  // namespace megamoe::cpu
