// The tensor core's own reading of what pack() and the pullers lay out: registers and swizzled
// shared memory as the instruction's definition has them, multiplied on the host.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "machine/sm90/descriptor.hpp"
#include "machine/sm90/fragment.hpp"
#include "machine/sm90/plans.hpp"

namespace megamoe::sm90 {
namespace {

// A slab of small integers, so that sums are exact, and the rows of one tile.
struct Tile {
  Operands operands;
  int block_m;
  std::vector<int> weights = std::vector<int>(kSlabRows * kStepDepth);
  std::vector<int> tokens = std::vector<int>(static_cast<std::size_t>(kLargestBlockM) * kStepDepth);

  int weight(int row, int k) const {
    return weights[static_cast<std::size_t>(row * kStepDepth + k)];
  }
  int token(int row, int k) const { return tokens[static_cast<std::size_t>(row * kStepDepth + k)]; }
};

Tile random_tile(Operands operands, int block_m) {
  Tile tile{operands, block_m};
  std::mt19937 random(7);
  for (int& value : tile.weights)
    value = static_cast<int>(random() % 15) - 7;
  for (int& value : tile.tokens)
    value = static_cast<int>(random() % 31) - 15;
  return tile;
}

// What a thread finds of each code: by the code's word, as the decoder walks them. Word 2c + r of a
// thread is chunk c of its upper (r = 0) or lower row; its registers of k-step s are the upper row,
// the lower row, and both again half a k-step on.
class WeightRegisters {
 public:
  explicit WeightRegisters(const Tile& tile) : elements_(kSlabRows * kStepDepth) {
    const int in_register = 4 / element_bytes(tile.operands);
    for (int row = 0; row < kSlabRows; ++row)
      for (int k = 0; k < kStepDepth; ++k) {
        const int byte = code_place(tile.operands, row, k).word_byte;
        const int vector = byte / 16;
        const int thread = vector / 64 * 32 + vector % 32;
        const int word = vector / 32 % 2 * 4 + byte % 16 / 4;
        const int in_word = k % 8;
        const int chunk = word / 2;
        const int is_lower = word % 2;
        // A chunk's eight codes fill registers of `in_register` codes, upper halves of K first.
        const int pair = in_word / in_register;
        const int k_step = tile.operands == Operands::kFloat8 ? chunk : 2 * chunk + pair / 2;
        at(thread, k_step, pair % 2 * 2 + is_lower, in_word % in_register, in_register) =
            tile.weight(row, k);
      }
  }

  int get(int thread, int k_step, int reg, int element, int in_register) const {
    return elements_[index(thread, k_step, reg, element, in_register)];
  }

 private:
  static std::size_t index(int thread, int k_step, int reg, int element, int in_register) {
    const int k_steps = kStepDepth / (8 * in_register);
    return static_cast<std::size_t>(((thread * k_steps + k_step) * 4 + reg) * in_register +
                                    element);
  }
  int& at(int thread, int k_step, int reg, int element, int in_register) {
    return elements_[index(thread, k_step, reg, element, in_register)];
  }

  std::vector<int> elements_;
};

// Shared memory in elements' places, written as the pullers write a row: value k of a token at
// token_position(k), in chunks where token_chunk_offset says.
std::vector<int> token_memory(const Tile& tile) {
  const int bytes = element_bytes(tile.operands);
  std::vector<int> memory(static_cast<std::size_t>(token_tile_bytes(tile.operands, tile.block_m)));
  for (int row = 0; row < tile.block_m; ++row)
    for (int k = 0; k < kStepDepth; ++k) {
      const int byte = token_position(tile.operands, k) * bytes;
      const int at = token_chunk_offset(tile.block_m, row, byte / kChunkBytes) + byte % kChunkBytes;
      memory[static_cast<std::size_t>(at)] = tile.token(row, k);
    }
  return memory;
}

// The instruction's reading of a K-major operand with 128-byte swizzle: rows of 128 bytes, eight to
// a group, groups `stride` apart; bits 4-6 of the address are those of the plain place XOR bits
// 7-9.
int swizzled_address(std::uint32_t descriptor_low,
                     std::uint32_t descriptor_high,
                     int row,
                     int byte) {
  const auto start = static_cast<int>((descriptor_low & 0x3FFF) << 4);
  const auto stride = static_cast<int>((descriptor_high & 0x3FFF) << 4);
  const int plain = start + row / 8 * stride + row % 8 * kSwizzleBytes + byte;
  return plain ^ ((plain >> 7 & 7) << 4);
}

int product(const Tile& tile,
            const WeightRegisters& weights,
            const std::vector<int>& memory,
            int row,
            int token) {
  const int bytes = element_bytes(tile.operands);
  const int in_register = 4 / bytes;
  const int thread_of_row = row / 16 * 32 + row % 8 * 4;
  const int is_lower = row % 16 / 8;
  int sum = 0;
  for (int k_step = 0; k_step < kStepDepth / (8 * in_register); ++k_step) {
    // Four k-steps of 32 bytes are a swizzled row; bf16 has two such panels.
    const std::uint32_t descriptor =
        tile_descriptor_low(0) +
        descriptor_next_panel(tile.block_m) * static_cast<std::uint32_t>(k_step / 4) +
        kDescriptorNextK * static_cast<std::uint32_t>(k_step % 4);
    for (int quad = 0; quad < 4; ++quad)
      for (int half = 0; half < 2; ++half)
        for (int element = 0; element < in_register; ++element) {
          const int weight =
              weights.get(thread_of_row + quad, k_step, half * 2 + is_lower, element, in_register);
          const int k = (half * 4 + quad) * in_register + element;
          const int address = swizzled_address(descriptor, kTileDescriptorHigh, token, k * bytes);
          sum += weight * memory[static_cast<std::size_t>(address)];
        }
  }
  return sum;
}

TEST(TensorCore, ReadsWhatWasLaidOut) {
  for (const Operands operands : {Operands::kFloat8, Operands::kBfloat16})
    for (const int block_m : kBlockSizes) {
      SCOPED_TRACE(testing::Message() << element_bytes(operands) << " bytes, block_m " << block_m);
      const Tile tile = random_tile(operands, block_m);
      const WeightRegisters weights(tile);
      const std::vector<int> memory = token_memory(tile);
      for (int row = 0; row < kSlabRows; ++row)
        for (int token = 0; token < block_m; ++token) {
          int wanted = 0;
          for (int k = 0; k < kStepDepth; ++k)
            wanted += tile.weight(row, k) * tile.token(token, k);
          ASSERT_EQ(product(tile, weights, memory, row, token), wanted) << row << ' ' << token;
        }
    }
}

}  // namespace
}  // namespace megamoe::sm90
