#include "machine/sm90/pack.hpp"

#include <algorithm>
#include <cstring>

#include "base/check.hpp"
#include "machine/sm90/pack_slabs.hpp"

namespace megamoe::sm90 {
namespace {

constexpr std::uint8_t kNanScale = 255;
constexpr int kScaleBias = 127;

std::uint8_t code_at(const CanonicalRow& row, int k) {
  const std::uint8_t both = row.codes[static_cast<std::size_t>(k / 2)];
  return static_cast<std::uint8_t>(k % 2 == 0 ? both & 0xF : both >> 4);
}

// -0 is a zero too: its exponent must not widen the row's range.
bool has_magnitude(const CanonicalRow& row, int group) {
  const auto bytes = row.codes.subspan(static_cast<std::size_t>(group) * kGroup / 2, kGroup / 2);
  return std::any_of(bytes.begin(), bytes.end(), [](std::uint8_t b) { return (b & 0x77) != 0; });
}

int field_of(Operands operands, const RowRange& range, std::uint8_t scale) {
  const int bias = operands == Operands::kFloat8 ? kFieldBias8 : kFieldBias16;
  return scale - kScaleBias - range.base + bias;
}

void store_code(std::byte* slab, const CodePlace& place, std::uint32_t code) {
  std::uint32_t word;
  std::memcpy(&word, slab + place.word_byte, sizeof word);
  word |= (code & 7U) << place.magnitude_bit;
  word |= (code >> 3U) << place.sign_bit;
  std::memcpy(slab + place.word_byte, &word, sizeof word);
}

void store_exponent(std::byte* slab, const ExponentPlace& place, int field) {
  slab[place.byte] |= static_cast<std::byte>(field << place.bit);
}

void pack_row(const WeightLayout& layout,
              const CanonicalRow& row,
              const RowRange& range,
              int packed_row,
              std::byte* packed) {
  const int slab_index = packed_row / kSlabRows;
  const int block = slab_index / kBlockSlabs;
  const int in_slab = packed_row % kSlabRows;
  const int groups = layout.depth / kGroup;
  for (int group = 0; group < groups; ++group) {
    const int step = group / kGroupsPerStep;
    const int in_step = group % kGroupsPerStep;
    std::byte* slab = packed + layout.offset(block, step, slab_index % kBlockSlabs);
    for (int i = 0; i < kGroup; ++i)
      store_code(slab,
                 code_place(layout.operands, in_slab, in_step * kGroup + i),
                 code_at(row, group * kGroup + i));
    const bool counts = !range.is_nan && has_magnitude(row, group);
    const int field =
        counts ? field_of(layout.operands, range, row.scales[static_cast<std::size_t>(group)]) : 0;
    store_exponent(slab, exponent_place(layout.operands, in_slab, in_step), std::max(field, 0));
  }
}

}  // namespace

RowRange range_of(Operands operands, const CanonicalRow& row) {
  int most = -1;
  int least = 256;
  RowRange range;
  for (int group = 0; group < static_cast<int>(row.scales.size()); ++group) {
    const std::uint8_t scale = row.scales[static_cast<std::size_t>(group)];
    if (scale == kNanScale) range.is_nan = true;
    if (scale == kNanScale || !has_magnitude(row, group)) continue;
    most = std::max<int>(most, scale);
    least = std::min<int>(least, scale);
  }
  if (most < 0) return range;
  const int top =
      operands == Operands::kFloat8 ? kTopField8 - kFieldBias8 : kTopField16 - kFieldBias16;
  range.base = most - kScaleBias - top;
  // A bf16 row loses only groups more than 2^132 under its largest, which fp32 sums can't hold
  // beside it.
  range.fits = operands == Operands::kBfloat16 || most - least <= kTopField8;
  return range;
}

bool fits_float8(const WeightLayout& layout, const CanonicalLinear& linear) {
  for (int row = 0; row < layout.rows; ++row)
    if (!range_of(Operands::kFloat8, linear.row(layout, row)).fits) return false;
  return true;
}

void pack_slabs(const WeightLayout& layout,
                const CanonicalLinear& linear,
                const gpu::PackedRange& slabs,
                std::span<std::byte> packed,
                std::span<std::int16_t> bases) {
  MEGAMOE_CHECK(static_cast<std::int64_t>(packed.size()) == layout.bytes());
  MEGAMOE_CHECK(static_cast<int>(bases.size()) == layout.padded_rows());
  for (int slab = slabs.first; slab < slabs.end(); ++slab)
    for (int step = 0; step < layout.steps(); ++step)
      std::fill_n(packed.data() + layout.offset(slab / kBlockSlabs, step, slab % kBlockSlabs),
                  slab_bytes(layout.operands),
                  std::byte{0});
  const int first = slabs.first * kSlabRows;
  const int end = slabs.end() * kSlabRows;
  std::fill(bases.begin() + first, bases.begin() + end, std::int16_t{0});
  for (int row = first; row < std::min(end, layout.rows); ++row) {
    const CanonicalRow source = linear.row(layout, row);
    const RowRange exponents = range_of(layout.operands, source);
    require(exponents.fits,
            ErrorCode::kInvalidArgument,
            "weight row ",
            row,
            ": its group exponents span more than ",
            kTopField8,
            " binades, which the FP8 form can't hold; pack the layer for bf16 operands");
    bases[static_cast<std::size_t>(row)] =
        exponents.is_nan ? kNanBase : static_cast<std::int16_t>(exponents.base);
    pack_row(layout, source, exponents, row, packed.data());
  }
}

void pack(const WeightLayout& layout,
          const CanonicalLinear& linear,
          std::span<std::byte> packed,
          std::span<std::int16_t> bases) {
  pack_slabs(layout, linear, {.first = 0, .count = layout.slabs()}, packed, bases);
}

}  // namespace megamoe::sm90
