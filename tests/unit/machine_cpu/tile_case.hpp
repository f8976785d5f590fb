#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <random>
#include <vector>

#include "machine/cpu/tile/tile.hpp"
#include "megamoe/weights.hpp"

namespace megamoe::cpu {

using Random = std::mt19937;

// Bytes that begin at a cache line. Poisoned, so that what nobody wrote shows as NaN.
class AlignedBytes {
 public:
  explicit AlignedBytes(std::size_t count);
  std::byte* data() { return bytes_.get(); }
  const std::byte* data() const { return bytes_.get(); }
  std::size_t size() const { return count_; }

 private:
  struct Free {
    void operator()(std::byte* bytes) const { std::free(bytes); }
  };
  std::size_t count_;
  std::unique_ptr<std::byte, Free> bytes_;
};

// From which the scale bytes of a case are drawn.
struct ScaleBytes {
  std::vector<std::uint8_t> choices;

  static ScaleBytes between(int least, int largest);
  std::uint8_t draw(Random& random) const;
};

// One expert in canonical layout, and packed.
struct Expert {
  Problem problem;
  std::vector<std::uint8_t> linear1, linear1_scale, linear2, linear2_scale;
  std::vector<float> linear1_bias, linear2_bias;  // empty: none

  WeightView view() const;
  AlignedBytes packed_linear1() const;
  AlignedBytes packed_linear2() const;
};

Expert random_expert(Random& random, int hidden, int intermediate, const ScaleBytes& scales);
void add_biases(Random& random, Expert& expert);

// Rows of E4M3 codes and scales, with a routing weight each.
struct Tokens {
  int k = 0;
  int num_rows = 0;
  std::vector<std::uint8_t> codes, scales;
  std::vector<float> routing_weights;

  std::uint8_t* codes_of(int row) { return codes.data() + std::ptrdiff_t{row} * k; }
  std::uint8_t* scales_of(int row) { return scales.data() + std::ptrdiff_t{row} * (k / 32); }
  const std::uint8_t* codes_of(int row) const { return codes.data() + std::ptrdiff_t{row} * k; }
  const std::uint8_t* scales_of(int row) const {
    return scales.data() + std::ptrdiff_t{row} * (k / 32);
  }
};

Tokens random_tokens(Random& random, int num_rows, int k, const ScaleBytes& scales);
AlignedBytes pool_of(const TileKernel& kernel, const Tokens& tokens);

// The same layer in fp64, with the roundings of the contract and nothing of the kernel's.
double dot(const std::uint8_t* weight_codes,
           const std::uint8_t* weight_scales,
           const std::uint8_t* token_codes,
           const std::uint8_t* token_scales,
           int k);
Tokens reference_linear1(const Expert& expert, const Tokens& tokens);
std::vector<float> reference_linear2(const Expert& expert, const Tokens& intermediate);

// Both linears of the kernel, over all channels, in tiles as high as they go.
struct TileShape {
  int rows = kMaxTileRows;
  int linear1_channels = kLinear1Step;
  int linear2_channels = kLinear2Step;
};
AlignedBytes run_linear1(const TileKernel& kernel,
                         const Expert& expert,
                         const Tokens& tokens,
                         const TileShape& shape = {});
std::vector<Bfloat16> run_layer(const TileKernel& kernel,
                                const Expert& expert,
                                const Tokens& tokens,
                                const TileShape& shape = {});

// |actual - expected| / |expected|, over one row.
double relative_error(const float* actual, const float* expected, int count);

std::vector<float> widened(const std::vector<Bfloat16>& values);

}  // namespace megamoe::cpu
