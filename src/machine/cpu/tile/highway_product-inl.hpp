// The product of the sets that Highway compiles. Included once per target by highway_functions.cc.
#if defined(MEGAMOE_HIGHWAY_PRODUCT_INL) == defined(HWY_TARGET_TOGGLE)
#  ifdef MEGAMOE_HIGHWAY_PRODUCT_INL
#    undef MEGAMOE_HIGHWAY_PRODUCT_INL
#  else
#    define MEGAMOE_HIGHWAY_PRODUCT_INL
#  endif

#  include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace megamoe::cpu {
namespace HWY_NAMESPACE {
#  if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::CappedTag<float, kHalfPanelRows>;
using Words = hn::Rebind<std::int32_t, Floats>;
using FloatVector = hn::Vec<Floats>;

inline constexpr int kLanes = static_cast<int>(hn::MaxLanes(Floats()));
// A strip is what stays in registers: kStripVectors vectors of output rows by kStripRows tokens,
// chosen for 16 registers, or 32.
inline constexpr int kStripVectors = kLanes == kHalfPanelRows ? 2 : 4;
inline constexpr int kStripLanes = kStripVectors * kLanes;
inline constexpr int kStripRows = kLanes == kHalfPanelRows ? 12 : 3;

// K is taken in chunks, decoded to fp32 for all rows of the tile.
inline constexpr int kChunkGroups = 8;
inline constexpr int kChunk = kChunkGroups * kGroupSize;
static_assert(sizeof(float) * kChunk * kPanelRows <= sizeof(TileScratch::weights));
static_assert(sizeof(float) * kChunk * kStripRows <= sizeof(TileScratch::tokens));

// weights[k][row] of kChunkGroups groups or fewer as fp32, scaled relative to the row's least
// scale. Twice a code's value is a small integer: looked up into the top byte of a word, it becomes
// a float by conversion, and one multiplication scales it.
HWY_INLINE void decode_group(const Panel& panel, int group, float* HWY_RESTRICT weights) {
  const Floats floats;
  const Words words;
  const hn::Repartition<std::int8_t, Words> bytes;
  alignas(16) static constexpr std::int8_t kTwice[16] = {
      0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
  const auto table = hn::LoadDup128(bytes, kTwice);
  const auto code_mask = hn::Set(words, 0x0F00'0000);
  // 2^-25, of twice the value in the top byte, as the exponent field of a float.
  const auto unscaled = hn::Set(words, 127 - 25);
  const auto largest_shift = hn::Set(words, kLargestFoldedShift);
  const std::uint8_t* shifts = panel.shifts + group * kPanelRows;
  const auto* codes = reinterpret_cast<const std::int32_t*>(
      panel.codes + static_cast<std::size_t>(group) * kCodeBytesPerGroup);
  for (int row = 0; row < kPanelRows; row += kLanes) {
    const hn::Rebind<std::uint8_t, Words> row_bytes_tag;
    const auto shift =
        hn::Min(hn::PromoteTo(words, hn::LoadU(row_bytes_tag, shifts + row)), largest_shift);
    const auto factor = hn::BitCast(floats, hn::ShiftLeft<23>(hn::Add(unscaled, shift)));
    for (int word = 0; word < kGroupSize / 8; ++word) {
      auto nibbles = hn::LoadU(words, codes + word * kPanelRows + row);
      float* HWY_RESTRICT to = weights + 8 * word * kPanelRows + row;
      for (int i = 0; i < 8; ++i) {
        const auto code = hn::And(hn::ShiftLeft<24>(nibbles), code_mask);
        const auto twice =
            hn::BitCast(words, hn::TableLookupBytes(table, hn::BitCast(bytes, code)));
        const int k = i < 4 ? 2 * i : 2 * i - 7;  // even elements are in the low half
        hn::StoreU(hn::Mul(hn::ConvertTo(floats, twice), factor), floats, to + k * kPanelRows);
        nibbles = hn::ShiftRight<4>(nibbles);
      }
    }
  }
}

// bf16 to fp32.
HWY_INLINE void widen(const std::byte* row, int first, int count, float* HWY_RESTRICT to) {
  const Words words;
  const auto* values = reinterpret_cast<const std::uint16_t*>(row) + first;
  const hn::Rebind<std::uint16_t, Words> narrow;
  for (int i = 0; i < count; i += kLanes) {
    const auto bits = hn::ShiftLeft<16>(hn::PromoteTo(words, hn::LoadU(narrow, values + i)));
    hn::StoreU(hn::BitCast(Floats(), bits), Floats(), to + i);
  }
}

// One strip of sums over one chunk. Along K, within a pair the odd element first, as vdpbf16ps
// does. Products of a token with a weight are exact, so that fused and unfused additions agree.
template <int kRows>
HWY_INLINE void multiply_strip(const float* HWY_RESTRICT weights,
                               const float* HWY_RESTRICT tokens,
                               int count,
                               float* HWY_RESTRICT sums) {
  const Floats floats;
  FloatVector sum[kRows][kStripVectors];
  for (int row = 0; row < kRows; ++row)
    for (int v = 0; v < kStripVectors; ++v)
      sum[row][v] = hn::LoadU(floats, sums + row * TileScratch::kSumStride + v * kLanes);
  for (int k = 0; k < count; k += 2) {
    for (int odd = 1; odd >= 0; --odd) {
      const float* HWY_RESTRICT at = weights + (k + odd) * kPanelRows;
      FloatVector weight[kStripVectors];
      for (int v = 0; v < kStripVectors; ++v)
        weight[v] = hn::LoadU(floats, at + v * kLanes);
      for (int row = 0; row < kRows; ++row) {
        const auto token = hn::Set(floats, tokens[row * kChunk + k + odd]);
        for (int v = 0; v < kStripVectors; ++v)
          sum[row][v] = hn::MulAdd(token, weight[v], sum[row][v]);
      }
    }
  }
  for (int row = 0; row < kRows; ++row)
    for (int v = 0; v < kStripVectors; ++v)
      hn::StoreU(sum[row][v], floats, sums + row * TileScratch::kSumStride + v * kLanes);
}

template <int kRows>
HWY_INLINE void multiply_strips(
    int rows, const float* weights, const float* tokens, int count, float* sums) {
  if constexpr (kRows > 1) {
    if (rows < kRows) return multiply_strips<kRows - 1>(rows, weights, tokens, count, sums);
  }
  for (int first = 0; first < kPanelRows; first += kStripLanes)
    multiply_strip<kRows>(weights + first, tokens, count, sums + first);
}

inline void multiply_chunk(
    const PanelProduct& product, int first_group, int groups, TileScratch& scratch, float* sums) {
  const int count = groups * kGroupSize;
  const auto* const weights = reinterpret_cast<const float*>(scratch.weights);
  auto* const tokens = reinterpret_cast<float*>(scratch.tokens);
  for (int row = 0; row < product.num_rows; row += kStripRows) {
    const int rows = HWY_MIN(product.num_rows - row, kStripRows);
    for (int i = 0; i < rows; ++i)
      widen(product.rows.data + static_cast<std::size_t>(row + i) * product.rows.stride,
            first_group * kGroupSize,
            count,
            tokens + i * kChunk);
    multiply_strips<kStripRows>(rows, weights, tokens, count, sums + row * TileScratch::kSumStride);
  }
}

// The last step of a panel: its rows' least scales.
inline void scale_sums(const PanelHeader& header, int num_rows, float* sums) {
  const Floats floats;
  for (int row = 0; row < num_rows; ++row)
    for (int lane = 0; lane < kPanelRows; lane += kLanes) {
      float* at = sums + row * TileScratch::kSumStride + lane;
      const auto scale = hn::LoadU(floats, header.scale + lane);
      hn::StoreU(hn::Mul(hn::LoadU(floats, at), scale), floats, at);
    }
}

inline void multiply(const PanelProduct& product, TileScratch& scratch) {
  const int all_groups = product.k / kGroupSize;
  auto* const weights = reinterpret_cast<float*>(scratch.weights);
  for (int index = 0; index < product.num_panels; ++index) {
    const Panel& panel = product.panels[index];
    float* sums = scratch.sums + index * kPanelRows;
    for (int row = 0; row < product.num_rows; ++row)
      for (int lane = 0; lane < kPanelRows; lane += kLanes)
        hn::StoreU(hn::Zero(Floats()), Floats(), sums + row * TileScratch::kSumStride + lane);
    for (int first = 0; first < all_groups; first += kChunkGroups) {
      const int groups = HWY_MIN(all_groups - first, kChunkGroups);
      for (int i = 0; i < groups; ++i)
        decode_group(panel, first + i, weights + i * kGroupSize * kPanelRows);
      multiply_chunk(product, first, groups, scratch, sums);
    }
    scale_sums(*panel.header, product.num_rows, sums);
  }
}

#  endif
}  // namespace HWY_NAMESPACE
}  // namespace megamoe::cpu
HWY_AFTER_NAMESPACE();

#endif
