#include "machine/sm100/pack.hpp"

#include <algorithm>
#include <cstring>

#include "base/check.hpp"

namespace megamoe::sm100 {
namespace {

void pack_scales(const WeightLayout& layout,
                 const gpu::CanonicalRow& row,
                 int packed_row,
                 std::span<std::byte> scales) {
  constexpr int kGroups = kStepDepth / kScaleGroup;
  const int block = packed_row / kBlockRows;
  const int word = scale_word(packed_row % kBlockRows);
  for (int group = 0; group < static_cast<int>(row.scales.size()); ++group) {
    const std::int64_t step = layout.scale_offset(block, group / kGroups);
    scales[static_cast<std::size_t>(step + word * 4 + group % kGroups)] =
        static_cast<std::byte>(row.scales[static_cast<std::size_t>(group)]);
  }
}

}  // namespace

void pack_blocks(const WeightLayout& layout,
                 const gpu::CanonicalLinear& linear,
                 const gpu::PackedRange& blocks,
                 std::span<std::byte> codes,
                 std::span<std::byte> scales) {
  MEGAMOE_CHECK(static_cast<std::int64_t>(codes.size()) == layout.code_bytes());
  MEGAMOE_CHECK(static_cast<std::int64_t>(scales.size()) == layout.scale_bytes());
  const int first = blocks.first * kBlockRows;
  const int end = blocks.end() * kBlockRows;
  const auto code = [&](int row) { return codes.data() + std::int64_t{row} * layout.row_bytes(); };
  const auto scale = [&](int block) { return scales.data() + layout.scale_offset(block, 0); };
  std::fill(code(first), code(end), std::byte{0});
  std::fill(scale(blocks.first), scale(blocks.end()), std::byte{kPaddingScale});
  for (int packed_row = first; packed_row < std::min(end, layout.rows); ++packed_row) {
    const gpu::CanonicalRow row = linear.row(layout, packed_row);
    std::memcpy(code(packed_row), row.codes.data(), row.codes.size());
    pack_scales(layout, row, packed_row, scales);
  }
}

void pack(const WeightLayout& layout,
          const gpu::CanonicalLinear& linear,
          std::span<std::byte> codes,
          std::span<std::byte> scales) {
  pack_blocks(layout, linear, {.count = layout.blocks()}, codes, scales);
}

}  // namespace megamoe::sm100
