#pragma once

#include <cstddef>
#include <cstdint>

#include "machine/cpu/tile/instruction_set.hpp"
#include "machine/cpu/tile/packed_weights.hpp"
#include "machine/cpu/tile/pool_row.hpp"
#include "megamoe/problem.hpp"
#include "numerics/bfloat16.hpp"

namespace megamoe::cpu {

inline constexpr int kMaxTileRows = 192;
inline constexpr int kMaxTileWidth = 1 << 19;  // of H and of I, for the sums' exactness
inline constexpr int kLinear1Step =
    64;  // 32 gate and the 32 up rows that match: one group of linear 2
inline constexpr int kLinear2Step = 32;  // one panel

// Rows of a pool, borrowed: row i begins at data + i * stride (a multiple of 64, at least
// row_bytes of its width).
struct PoolRows {
  const std::byte* data = nullptr;
  std::size_t stride = 0;
};
struct MutablePoolRows {
  std::byte* data = nullptr;
  std::size_t stride = 0;
};

// Linear 1 of one tile: num_rows rows by num_channels of the 2 I output channels of an expert,
// counted in the interleaved order: channels 64 g .. 64 g + 63 are gate and up of the intermediate
// channels 32 g .. 32 g + 31, and become group g of the output rows.
struct Linear1Tile {
  PackedMatrix weights;   // 2 I rows, k = H
  int first_channel = 0;  // multiples of kLinear1Step, both
  int num_channels = 0;
  PoolRows input;                          // rows of width H
  int num_rows = 0;                        // 1..kMaxTileRows
  const float* routing_weights = nullptr;  // [num_rows]
  const float* bias = nullptr;             // the expert's, gate [I] then up [I], or null
  Activation activation;
  MutablePoolRows output;  // rows of width I; this tile writes its groups only
};

// Linear 2 of one tile: num_rows rows by num_channels of the H output channels of an expert.
struct Linear2Tile {
  PackedMatrix weights;   // H rows, k = I
  int first_channel = 0;  // multiples of kLinear2Step, both
  int num_channels = 0;
  PoolRows input;                          // rows of width I
  int num_rows = 0;                        // 1..kMaxTileRows
  const float* routing_weights = nullptr;  // [num_rows]; used only with a bias
  const float* bias = nullptr;             // the expert's, [H], or null
  Bfloat16* output = nullptr;     // channel first_channel of row i is output[i * output_stride]
  std::size_t output_stride = 0;  // >= num_channels
};

// What a worker needs besides; of one worker at a time. Its parts mean nothing between calls.
struct alignas(64) TileScratch {
  static constexpr int kSumStride = 64;  // two panels

  float sums[kMaxTileRows * kSumStride];
  std::byte weights[64 * 1024];  // a chunk of K of one panel, decoded
  std::byte tokens[16 * 1024];   // the same chunk of a few rows, widened
};
static_assert(sizeof(TileScratch) <= 256 * 1024);

struct TileFunctions;

// The arithmetic of the CPU machine for one instruction set. A value; stateless. The bits of an
// output depend on its token, its routing weight, its expert and the instruction set, and on
// nothing else: not on the tile's height, the row's place in it, the channels of the tile, or the
// worker.
class TileKernel {
 public:
  explicit TileKernel(InstructionSet set = best_instruction_set());

  InstructionSet instruction_set() const { return set_; }

  // Puts a token's `k` E4M3 codes and k / 32 scales into a pool row.
  void store_row(const std::uint8_t* codes,
                 const std::uint8_t* scales,
                 int k,
                 std::byte* row) const;

  void linear1(const Linear1Tile& tile, TileScratch& scratch) const;
  void linear2(const Linear2Tile& tile, TileScratch& scratch) const;

 private:
  InstructionSet set_;
  const TileFunctions* functions_;
};

}  // namespace megamoe::cpu
