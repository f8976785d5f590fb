#pragma once

#include <cstddef>
#include <cstdint>

#include "base/math.hpp"
#include "megamoe/weights.hpp"
#include "numerics/ue8m0.hpp"

namespace megamoe::cpu {

// The CPU's own layout of an expert's matrix, the same for every instruction set: panels of 32
// output rows, each streamed once from front to back.
//
//   panel    header | shifts, 32 bytes per group of K | codes, 512 bytes per group
//   rows     linear 1: 16 gate rows, then the 16 up rows that match; linear 2: 32 rows in order
//   shifts   [group][row]: how many powers of two the group's scale lies above the row's least
//   codes    [group][8 elements of K][row]: one 32-bit word, in which nibble j of the low half is
//            element 2j and nibble j of the high half element 2j + 1. Shifting 16-bit lanes by 4j
//            thus gives the pair (2j, 2j + 1) in place, as bf16 dot products want it.
inline constexpr int kPanelRows = 32;
inline constexpr int kHalfPanelRows = kPanelRows / 2;
inline constexpr std::size_t kShiftBytesPerGroup = kPanelRows;
inline constexpr std::size_t kCodeBytesPerGroup = kPanelRows * kGroupSize / 2;

// The scales of a row may differ by so much for the usual path, which folds them into the operands;
// beyond it wide_product.hpp takes over. The bounds on all operands are in pool_row.hpp.
inline constexpr int kLargestFoldedShift = 32;

struct alignas(64) PanelHeader {
  float scale[kPanelRows];           // 2^exponent; NaN if a scale of the row is NaN
  std::int8_t exponent[kPanelRows];  // of the row's least scale, all-zero groups not counted
  std::uint8_t is_wide;              // a shift exceeds kLargestFoldedShift
};
static_assert(sizeof(PanelHeader) == 192);

constexpr std::size_t panel_bytes(int k) {
  const auto groups = static_cast<std::size_t>(k) / kGroupSize;
  return sizeof(PanelHeader) + align_up(groups * kShiftBytesPerGroup, std::size_t{64}) +
         groups * kCodeBytesPerGroup;
}

// Bytes of a matrix of `rows` (a multiple of 32) by `k` (a multiple of 32). 64-byte aligned,
// please.
constexpr std::size_t packed_bytes(int rows, int k) {
  return static_cast<std::size_t>(rows) / kPanelRows * panel_bytes(k);
}

// Packs the first expert of the view. Linear 1 needs packed_bytes(2 I, H), linear 2
// packed_bytes(H, I).
void pack_linear1(const WeightView& expert, const Problem& problem, std::byte* packed);
void pack_linear2(const WeightView& expert, const Problem& problem, std::byte* packed);

// A packed matrix, borrowed.
struct PackedMatrix {
  const std::byte* bytes = nullptr;
  int rows = 0;
  int k = 0;
};

// The parts of a panel, borrowed.
struct Panel {
  const PanelHeader* header = nullptr;
  const std::uint8_t* shifts = nullptr;
  const std::uint8_t* codes = nullptr;
};

inline Panel panel_of(const PackedMatrix& matrix, int index) {
  const std::byte* bytes = matrix.bytes + static_cast<std::size_t>(index) * panel_bytes(matrix.k);
  const std::byte* shifts = bytes + sizeof(PanelHeader);
  const auto groups = static_cast<std::size_t>(matrix.k) / kGroupSize;
  const std::byte* codes = shifts + align_up(groups * kShiftBytesPerGroup, std::size_t{64});
  return {.header = reinterpret_cast<const PanelHeader*>(bytes),
          .shifts = reinterpret_cast<const std::uint8_t*>(shifts),
          .codes = reinterpret_cast<const std::uint8_t*>(codes)};
}

}  // namespace megamoe::cpu
