#pragma once

#include <algorithm>
#include <array>
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

// Values of the sixteen E2M1 codes.
inline constexpr std::array<double, 16> kFloat4Values = [] {
  std::array<double, 16> values{};
  for (std::size_t code = 0; code < values.size(); ++code)
    values[code] = static_cast<double>(to_float(Float4E2M1{static_cast<std::uint8_t>(code)}));
  return values;
}();

// What the products of one row add up to, and the root of the sum of their squares: the size that
// an error of the sum is to be seen against where its terms cancel.
struct DotProduct {
  double sum = 0;
  double squares = 0;

  double size() const { return std::max(std::fabs(sum), std::sqrt(squares)); }
};

inline DotProduct dot_product(const std::uint8_t* codes,
                              const std::uint8_t* scales,
                              std::int64_t row,
                              const std::vector<double>& values) {
  const auto depth = static_cast<std::int64_t>(values.size());
  const std::uint8_t* row_codes = codes + row * depth / 2;
  const std::uint8_t* row_scales = scales + row * depth / 32;
  DotProduct all;
  for (std::int64_t group = 0; group < depth / 32; ++group) {
    const double* of_group = values.data() + group * 32;
    double sum = 0;
    double squares = 0;
    for (std::int64_t i = 0; i < 16; ++i) {
      const std::uint8_t both = row_codes[group * 16 + i];
      const double even = kFloat4Values[both & 0xF] * of_group[2 * i];
      const double odd = kFloat4Values[both >> 4] * of_group[2 * i + 1];
      sum += even + odd;
      squares += even * even + odd * odd;
    }
    const double scale = std::ldexp(1.0, row_scales[group] - 127);
    all.sum += sum * scale;
    all.squares += squares * scale * scale;
  }
  return all;
}

inline double dot(const std::uint8_t* codes,
                  const std::uint8_t* scales,
                  std::int64_t row,
                  const std::vector<double>& values) {
  return dot_product(codes, scales, row, values).sum;
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

// Linear 1's group `g` of one row, from what `row` holds along K: bias, activation, and the
// contract's quantisation.
inline std::vector<double> activated_group(
    const Problem& p, const WeightView& w, double weight, const std::vector<double>& row, int g) {
  std::vector<double> group;
  for (int c = g * kScaleGroup; c < (g + 1) * kScaleGroup; ++c) {
    double gate = dot(w.linear1, w.linear1_scale, c, row);
    double up = dot(w.linear1, w.linear1_scale, p.intermediate + c, row);
    if (p.has_biases) {
      gate += static_cast<double>(w.linear1_bias[c]);
      up += static_cast<double>(w.linear1_bias[p.intermediate + c]);
    }
    group.push_back(
        activation_of(rounded_to_bfloat16(gate), rounded_to_bfloat16(up), weight, p.activation));
  }
  return quantised(group);
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
