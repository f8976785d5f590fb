#include "machine/cpu/tile/packed_weights.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace megamoe::cpu {
namespace {

// One matrix in canonical layout.
struct Canonical {
  const std::uint8_t* codes;
  const std::uint8_t* scales;
  int k;

  const std::uint8_t* codes_of(int row) const {
    return codes + static_cast<std::size_t>(row) * static_cast<std::size_t>(k) / 2;
  }
  const std::uint8_t* scales_of(int row) const {
    return scales + static_cast<std::size_t>(row) * static_cast<std::size_t>(k) / kGroupSize;
  }
};

constexpr int kGroupCodeBytes = kGroupSize / 2;

bool is_zero_group(const std::uint8_t* codes) {
  unsigned magnitudes = 0;
  for (int i = 0; i < kGroupCodeBytes; ++i)
    magnitudes |= codes[i] & 0x77U;  // -0 is a zero as well
  return magnitudes == 0;
}

// The four nibbles that are the low halves of the bytes of `bytes`, moved together.
constexpr std::uint32_t low_nibbles(std::uint32_t bytes) {
  std::uint32_t nibbles = bytes & 0x0F0F'0F0FU;
  nibbles = (nibbles | (nibbles >> 4)) & 0x00FF'00FFU;
  return (nibbles | (nibbles >> 8)) & 0xFFFFU;
}
static_assert(low_nibbles(0xD4C3'B2A1U) == 0x4321U);

void pack_codes(const std::uint8_t* codes, int lane, std::uint8_t* group) {
  constexpr int kWordsPerRow = kGroupCodeBytes / 4;
  for (int word = 0; word < kWordsPerRow; ++word) {
    std::uint32_t bytes = 0;
    for (unsigned i = 0; i < 4; ++i)
      bytes |= std::uint32_t{codes[static_cast<unsigned>(word) * 4 + i]} << (8 * i);
    const std::uint32_t packed = low_nibbles(bytes) | (low_nibbles(bytes >> 4) << 16);
    std::memcpy(group + 4 * (word * kPanelRows + lane), &packed, sizeof packed);
  }
}

// Exponents of a row's groups. A group of zeros contributes nothing whatever its scale, so that it
// does not widen the row's range; its shift is 0.
struct RowRange {
  int largest = std::numeric_limits<int>::min();
  int least = std::numeric_limits<int>::max();
  bool has_nan = false;
};

RowRange range_of(const Canonical& matrix, int row) {
  RowRange range;
  for (int group = 0; group < matrix.k / kGroupSize; ++group) {
    const Ue8m0 scale{matrix.scales_of(row)[group]};
    if (is_nan(scale)) {
      range.has_nan = true;
    } else if (!is_zero_group(matrix.codes_of(row) + group * kGroupCodeBytes)) {
      range.largest = std::max(range.largest, scale.exponent());
      range.least = std::min(range.least, scale.exponent());
    }
  }
  if (range.largest < range.least) range.largest = range.least = 0;
  return range;
}

struct PanelPlace {
  PanelHeader* header;
  std::uint8_t* shifts;
  std::uint8_t* codes;
};

void pack_row(const Canonical& matrix, int row, const PanelPlace& panel, int lane) {
  const RowRange range = range_of(matrix, row);
  panel.header->scale[lane] =
      range.has_nan ? std::numeric_limits<float>::quiet_NaN() : std::ldexp(1.0F, range.least);
  panel.header->exponent[lane] = static_cast<std::int8_t>(range.least);
  if (range.largest - range.least > kLargestFoldedShift) panel.header->is_wide = 1;
  for (int group = 0; group < matrix.k / kGroupSize; ++group) {
    const Ue8m0 scale{matrix.scales_of(row)[group]};
    const std::uint8_t* codes = matrix.codes_of(row) + group * kGroupCodeBytes;
    const bool has_shift = !is_nan(scale) && !is_zero_group(codes);
    panel.shifts[group * kPanelRows + lane] =
        static_cast<std::uint8_t>(has_shift ? scale.exponent() - range.least : 0);
    pack_codes(codes, lane, panel.codes + static_cast<std::size_t>(group) * kCodeBytesPerGroup);
  }
}

// `row_of(panel, lane)` says which canonical row goes where.
template <class RowOf>
void pack(const Canonical& matrix, int rows, std::byte* packed, RowOf row_of) {
  std::memset(packed, 0, packed_bytes(rows, matrix.k));
  for (int index = 0; index < rows / kPanelRows; ++index) {
    const Panel place = panel_of({.bytes = packed, .rows = rows, .k = matrix.k}, index);
    const PanelPlace panel{.header = const_cast<PanelHeader*>(place.header),
                           .shifts = const_cast<std::uint8_t*>(place.shifts),
                           .codes = const_cast<std::uint8_t*>(place.codes)};
    for (int lane = 0; lane < kPanelRows; ++lane)
      pack_row(matrix, row_of(index, lane), panel, lane);
  }
}

}  // namespace

void pack_linear1(const WeightView& expert, const Problem& problem, std::byte* packed) {
  const Canonical matrix{expert.linear1, expert.linear1_scale, problem.hidden};
  pack(matrix, 2 * problem.intermediate, packed, [&problem](int panel, int lane) {
    const bool is_up = lane >= kHalfPanelRows;
    return panel * kHalfPanelRows + lane % kHalfPanelRows + (is_up ? problem.intermediate : 0);
  });
}

void pack_linear2(const WeightView& expert, const Problem& problem, std::byte* packed) {
  const Canonical matrix{expert.linear2, expert.linear2_scale, problem.intermediate};
  pack(matrix, problem.hidden, packed, [](int panel, int lane) {
    return panel * kPanelRows + lane;
  });
}

}  // namespace megamoe::cpu
