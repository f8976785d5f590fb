#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "machine/sm90/fragment.hpp"
#include "machine/sm90/pool_tile.hpp"
#include "machine/sm90/regroup.hpp"
#include "megamoe/problem.hpp"
#include "megamoe/weights.hpp"
#include "numerics/bfloat16.hpp"
#include "numerics/float4.hpp"
#include "numerics/float8.hpp"
#include "numerics/quantize.hpp"

// Every stage again in fp64, each from what the machine itself stored before it.
namespace megamoe::test {

inline double weight_value(const std::uint8_t* codes,
                           const std::uint8_t* scales,
                           std::int64_t row,
                           std::int64_t depth,
                           std::int64_t k) {
  const std::int64_t at = row * depth + k;
  const std::uint8_t both = codes[at / 2];
  const Float4E2M1 code{static_cast<std::uint8_t>(at % 2 == 0 ? both & 0xF : both >> 4)};
  return std::ldexp(static_cast<double>(to_float(code)), scales[at / 32] - 127);
}

inline double dot(const std::uint8_t* codes,
                  const std::uint8_t* scales,
                  std::int64_t row,
                  const std::vector<double>& values) {
  const auto depth = static_cast<std::int64_t>(values.size());
  double sum = 0;
  for (std::int64_t k = 0; k < depth; ++k)
    sum += weight_value(codes, scales, row, depth, k) * values[static_cast<std::size_t>(k)];
  return sum;
}

inline double activation_of(double gate, double up, double weight, const Activation& a) {
  const bool is_oai = a.kind == ActivationKind::kSwigluOai;
  const double bound = static_cast<double>(is_oai ? a.limit : a.clamp);
  gate = gate > bound ? bound : gate;
  up = up > bound ? bound : up < -bound ? -bound : up;
  const double slope = is_oai ? static_cast<double>(a.alpha) * gate : gate;
  return gate / (1.0 + std::exp(-slope)) * (is_oai ? up + 1.0 : up) * weight;
}

inline double rounded_to_bfloat16(double value) {
  return static_cast<double>(to_float(to_bfloat16(static_cast<float>(value))));
}

// A group of activations as the layer's contract quantises it.
inline std::vector<double> quantised(const std::vector<double>& group) {
  std::vector<float> values(group.begin(), group.end());
  const QuantizedGroup q = quantize_group(values.data());
  std::vector<double> back;
  for (std::uint8_t code : q.codes)
    back.push_back(std::ldexp(static_cast<double>(to_float(Float8E4M3{code})),
                              static_cast<int>(q.scale.bits) - 127));
  return back;
}

// Sums of squares, for relative L2.
struct Distance {
  double error = 0;
  double size = 0;
  std::int64_t cells = 0;

  void add(double got, double wanted) {
    // A NaN must not hide: it counts as infinitely wrong.
    const double difference = got - wanted;
    error += std::isfinite(difference) ? difference * difference : INFINITY;
    size += wanted * wanted;
    ++cells;
  }
  // The part of the error that rounding `wanted` to bf16 can't explain.
  void add_beyond_rounding(double got, double wanted) {
    const double half_place = std::ldexp(1.0, std::ilogb(wanted == 0 ? 1e-30 : wanted) - 8);
    const double error_left = std::max(0.0, std::fabs(got - wanted) - half_place);
    add(wanted + (std::isfinite(got) ? error_left : got), wanted);
  }
  // A whole row at the weight of one: rows with outliers must not speak for all.
  void add_row(const Distance& row) {
    if (row.size == 0) return;
    error += row.error / row.size;
    size += 1;
    cells += row.cells;
  }
  double relative() const {
    return size == 0 ? (error == 0 ? 0 : INFINITY) : std::sqrt(error / size);
  }
};

// A token row as the puller must write it: values by their place along K, and the exponent taken
// off.
struct RegroupedRow {
  std::vector<std::uint16_t> elements;  // E4M3 codes or bf16 bits, [steps * 128]
  int exponent = 0;
};

inline RegroupedRow regrouped_row(sm90::Operands operands,
                                  const std::uint8_t* codes,
                                  const std::uint8_t* scales,
                                  int hidden) {
  int asked = sm90::kNothingAsked;
  for (int g = 0; g < hidden / 32; ++g) {
    int most = 0;
    for (int i = 0; i < 32; ++i)
      most = std::max(most, codes[g * 32 + i] & 0x7F);
    asked = std::max(asked, sm90::asked_exponent(most, scales[g]));
  }
  RegroupedRow row;
  row.exponent = sm90::settled_exponent(asked);
  row.elements.resize(
      static_cast<std::size_t>(sm90::pool_row_bytes(sm90::Operands::kFloat8, hidden)));
  for (int k = 0; k < hidden; ++k) {
    const sm90::GroupShift shift = sm90::shift_of(scales[k / 32], row.exponent);
    const auto at =
        static_cast<std::size_t>(k / 128 * 128 + sm90::token_position(operands, k % 128));
    if (operands == sm90::Operands::kFloat8) {
      row.elements[at] = sm90::regrouped(codes[k], shift);
    } else {
      const float value = std::ldexp(to_float(Float8E4M3{codes[k]}), shift.binades);
      row.elements[at] = shift.is_nan ? 0x7FC0 : to_bfloat16(value).bits;
    }
  }
  return row;
}

// An element of a pool row, from the block's bytes.
inline std::uint16_t pool_element(
    sm90::Operands operands, const std::byte* block, int block_m, int row, int position) {
  const int bytes = sm90::element_bytes(operands);
  const int step = position / 128;
  const int byte = position % 128 * bytes;
  const std::byte* at =
      block + static_cast<std::int64_t>(step) * sm90::token_tile_bytes(operands, block_m) +
      sm90::token_chunk_offset(block_m, row, byte / 16) + byte % 16;
  return static_cast<std::uint16_t>(static_cast<unsigned>(at[0]) |
                                    (bytes == 2 ? static_cast<unsigned>(at[1]) << 8 : 0U));
}

inline double element_value(sm90::Operands operands, std::uint16_t element) {
  return static_cast<double>(operands == sm90::Operands::kFloat8
                                 ? to_float(Float8E4M3{static_cast<std::uint8_t>(element)})
                                 : to_float(Bfloat16{element}));
}

}  // namespace megamoe::test
