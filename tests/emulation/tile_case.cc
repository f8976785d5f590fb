#include "tile_case.hpp"

#include <cmath>
#include <cstring>
#include <random>

#include "machine/sm100/pack.hpp"
#include "numerics/float4.hpp"
#include "numerics/float8.hpp"
#include "numerics/ue8m0.hpp"

namespace megamoe::test {
namespace {

constexpr int kRows = sm100::kPairRows;

std::size_t index(int row, int depth, int k) {
  return static_cast<std::size_t>(row) * static_cast<std::size_t>(depth) +
         static_cast<std::size_t>(k);
}

// Near one, so that sums stay far from the ends of fp32.
std::uint8_t random_scale(std::mt19937& random) {
  return static_cast<std::uint8_t>(120 + random() % 15);
}

Float8E4M3 random_code(std::mt19937& random) {
  for (;;) {
    const Float8E4M3 code{static_cast<std::uint8_t>(random())};
    if (!is_nan(code)) return code;
  }
}

}  // namespace

TileCase::TileCase(const TileShape& chosen, unsigned seed)
    : shape(chosen), layout{kRows, chosen.depth} {
  make_weights(seed);
  make_tokens(seed + 1);
}

void TileCase::make_weights(unsigned seed) {
  std::mt19937 random(seed);
  const auto count = static_cast<std::size_t>(kRows * shape.depth);
  std::vector<std::uint8_t> canonical(count / 2);
  std::vector<std::uint8_t> scales(count / kGroupSize);
  for (std::uint8_t& pair : canonical)
    pair = static_cast<std::uint8_t>(random());
  for (std::uint8_t& scale : scales)
    scale = random_scale(random);
  weights_.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint8_t pair = canonical[i / 2];
    const double scale = to_float(Ue8m0{scales[i / kGroupSize]});
    weights_[i] = scale * to_float(i % 2 == 0 ? even_float4(pair) : odd_float4(pair));
  }
  codes.resize(static_cast<std::size_t>(layout.code_bytes()));
  weight_scales.resize(static_cast<std::size_t>(layout.scale_bytes()));
  sm100::pack(layout, {.codes = canonical.data(), .scales = scales.data()}, codes, weight_scales);
}

void TileCase::make_tokens(unsigned seed) {
  std::mt19937 random(seed);
  const int block_m = shape.block_m;
  const auto tile_steps = static_cast<std::size_t>(shape.tiles * shape.steps());
  const auto codes_of_step = static_cast<std::size_t>(sm100::token_tile_bytes(block_m));
  const auto scales_of_step = static_cast<std::size_t>(sm100::token_scale_bytes(block_m));
  // Behind the depth: zeros, under a scale of one. Behind the rows of a scale copy: not multiplied.
  tokens.assign(tile_steps * codes_of_step, std::byte{0});
  token_scales.assign(tile_steps * scales_of_step, std::byte{sm100::kPaddingScale});
  values_.resize(static_cast<std::size_t>(shape.tiles * block_m * shape.depth));
  for (int row = 0; row < shape.tiles * block_m; ++row) {
    const int tile = row / block_m;
    const int in_tile = row % block_m;
    const auto first_step = static_cast<std::size_t>(tile * shape.steps());
    const bool is_token = in_tile < shape.rows_of(tile);
    for (int k = 0; k < shape.depth; ++k) {
      const int step = k / sm100::kStepDepth;
      std::byte& scale =
          token_scales[first_step * scales_of_step +
                       static_cast<std::size_t>(sm100::token_scale_offset(block_m, step, in_tile) +
                                                k % sm100::kStepDepth / kGroupSize)];
      if (k % kGroupSize == 0) scale = static_cast<std::byte>(random_scale(random));
      const Float8E4M3 code = is_token ? random_code(random) : Float8E4M3{Float8E4M3::kNan};
      const std::int64_t chunk = sm100::token_chunk_offset(
          block_m, step, in_tile, k % sm100::kStepDepth / gpu::kChunkBytes);
      tokens[first_step * codes_of_step + static_cast<std::size_t>(chunk + k % gpu::kChunkBytes)] =
          std::byte{code.bits};
      values_[index(row, shape.depth, k)] =
          to_float(code) * double{to_float(Ue8m0{static_cast<std::uint8_t>(scale)})};
    }
  }
}

ExpectedSum TileCase::expected(int tile, int row, int token) const {
  const double* w = &weights_[index(row, shape.depth, 0)];
  const double* x = &values_[index(tile * shape.block_m + token, shape.depth, 0)];
  ExpectedSum sum{0, 0};
  for (int k = 0; k < shape.depth; ++k) {
    sum.value += w[k] * x[k];
    sum.magnitude += std::abs(w[k] * x[k]);
  }
  return sum;
}

}  // namespace megamoe::test
