// The product of the sets that Highway compiles. Included once per target by highway_functions.cc.
#if defined(MEGAMOE_HIGHWAY_PRODUCT_INL) == defined(HWY_TARGET_TOGGLE)
#  ifdef MEGAMOE_HIGHWAY_PRODUCT_INL
#    undef MEGAMOE_HIGHWAY_PRODUCT_INL
#  else
#    define MEGAMOE_HIGHWAY_PRODUCT_INL
#  endif

#  include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace megamoe::cpu {  // NOLINT(modernize-concat-nested-namespaces): the inner one is a macro
namespace HWY_NAMESPACE {
#  if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::CappedTag<float, kHalfPanelRows>;
using Words = hn::Rebind<std::int32_t, Floats>;
using FloatVector = hn::Vec<Floats>;
using WordVector = hn::Vec<Words>;

inline constexpr int kLanes = static_cast<int>(hn::MaxLanes(Floats()));
inline constexpr int kPanelVectors = kPanelRows / kLanes;
// A strip is what stays in registers: kStripVectors vectors of output rows by kStripRows tokens,
// chosen for 16 registers, or 32.
inline constexpr int kStripVectors = kLanes == kHalfPanelRows ? 2 : 4;
inline constexpr int kStripLanes = kStripVectors * kLanes;
inline constexpr int kStripRows = kLanes == kHalfPanelRows ? 12 : 3;

// Tiles of more rows than these take K in chunks: both panels' are decoded to fp32, then every
// strip is multiplied with them.
inline constexpr int kUnchunkedRows = 2;
inline constexpr int kChunkGroups = 4;
inline constexpr int kChunk = kChunkGroups * kGroupSize;
inline constexpr std::size_t kPanelChunk = std::size_t{kChunk} * kPanelRows;
static_assert(2 * sizeof(float) * kPanelChunk <= sizeof(TileScratch::weights));
static_assert(sizeof(float) * kChunk * kStripRows <= sizeof(TileScratch::tokens));

// How far ahead of their use codes are asked for.
inline constexpr std::size_t kPrefetchBytes = 2048;

// Codes to fp32, a vector of rows at a time. Twice a value is a small integer: looked up by its
// code into the top byte of a word with nothing below, it becomes a float by an exact conversion,
// and one multiplication scales it.
class Decoder {
 public:
  HWY_INLINE explicit Decoder(const Panel& panel)
      : panel_(panel), table_(hn::LoadDup128(Bytes(), kTwice)) {}

  // What scales the values of a vector of rows in one group, relative to the row's least scale.
  HWY_INLINE FloatVector factor(int group, int row) const {
    const Words words;
    const hn::Rebind<std::uint8_t, Words> narrow;
    const auto shift =
        hn::Min(hn::PromoteTo(words, hn::LoadU(narrow, panel_.shifts + group * kPanelRows + row)),
                hn::Set(words, kLargestFoldedShift));
    // 2^-25 is that of twice a value in the top byte.
    const auto exponent = hn::Add(shift, hn::Set(words, 127 - 25));
    return hn::BitCast(Floats(), hn::ShiftLeft<23>(exponent));
  }

  // Eight elements of K of a vector of rows; `word` counts eights of K.
  HWY_INLINE void decode(int word, int row, FloatVector factor, FloatVector* values) const {
    const auto* codes = panel_.codes + 4 * (static_cast<std::size_t>(word) * kPanelRows +
                                            static_cast<std::size_t>(row));
    __builtin_prefetch(codes + kPrefetchBytes);
    const auto nibbles = hn::LoadU(Words(), reinterpret_cast<const std::int32_t*>(codes));
    decode_bytes(nibbles, factor, values);
    decode_bytes(hn::ShiftRight<4>(nibbles), factor, values + 2);
  }

 private:
  using Bytes = hn::Repartition<std::int8_t, Words>;
  alignas(16) static constexpr std::int8_t kTwice[16] = {
      0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

  // The low nibbles of a word's bytes are elements 0, 4, 1, 5 of those that begin at `values`.
  HWY_INLINE void decode_bytes(WordVector nibbles, FloatVector factor, FloatVector* values) const {
    const auto index = hn::And(nibbles, hn::Set(Words(), 0x0F0F'0F0F));
    const auto twice =
        hn::BitCast(Words(), hn::TableLookupBytes(table_, hn::BitCast(Bytes(), index)));
    const auto top = hn::Set(Words(), static_cast<std::int32_t>(0xFF00'0000U));
    values[0] = scaled(hn::ShiftLeft<24>(twice), factor);
    values[4] = scaled(hn::And(hn::ShiftLeft<16>(twice), top), factor);
    values[1] = scaled(hn::And(hn::ShiftLeft<8>(twice), top), factor);
    values[5] = scaled(hn::And(twice, top), factor);
  }
  HWY_INLINE static FloatVector scaled(WordVector top_byte, FloatVector factor) {
    return hn::Mul(hn::ConvertTo(Floats(), top_byte), factor);
  }

  Panel panel_;
  hn::Vec<Bytes> table_;
};

// weights[k][row] of one group.
HWY_INLINE void decode_group(const Decoder& decoder, int group, float* HWY_RESTRICT weights) {
  constexpr int kWords = kGroupSize / 8;
  for (int row = 0; row < kPanelRows; row += kLanes) {
    const FloatVector factor = decoder.factor(group, row);
    for (int word = 0; word < kWords; ++word) {
      FloatVector values[8];
      decoder.decode(group * kWords + word, row, factor, values);
      for (int k = 0; k < 8; ++k)
        hn::StoreU(values[k], Floats(), weights + (8 * word + k) * kPanelRows + row);
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

// The order of summation, here and below: along K, within a pair the odd element first, as
// vdpbf16ps does. Products of a token with a weight are exact, so that fused and unfused additions
// agree.

// One or two rows, over all of K: weights are used as they are decoded.
template <int kRows>
HWY_INLINE void multiply_codes(const Panel& panel, const PanelProduct& product, float* sums) {
  constexpr int kWords = kGroupSize / 8;
  const Floats floats;
  const Decoder decoder(panel);
  FloatVector sum[kRows][kPanelVectors];
  for (int row = 0; row < kRows; ++row)
    for (int v = 0; v < kPanelVectors; ++v)
      sum[row][v] = hn::Zero(floats);
  for (int group = 0; group < product.k / kGroupSize; ++group) {
    float tokens[kRows][kGroupSize];
    for (int row = 0; row < kRows; ++row)
      widen(product.rows.data + static_cast<std::size_t>(row) * product.rows.stride,
            group * kGroupSize,
            kGroupSize,
            tokens[row]);
    FloatVector factor[kPanelVectors];
    for (int v = 0; v < kPanelVectors; ++v)
      factor[v] = decoder.factor(group, v * kLanes);
    for (int word = 0; word < kWords; ++word)
      for (int v = 0; v < kPanelVectors; ++v) {
        FloatVector values[8];
        decoder.decode(group * kWords + word, v * kLanes, factor[v], values);
        for (int k = 0; k < 8; ++k)
          for (int row = 0; row < kRows; ++row)
            sum[row][v] = hn::MulAdd(
                hn::Set(floats, tokens[row][8 * word + (k ^ 1)]), values[k ^ 1], sum[row][v]);
      }
  }
  for (int row = 0; row < kRows; ++row)
    for (int v = 0; v < kPanelVectors; ++v)
      hn::StoreU(sum[row][v], floats, sums + row * TileScratch::kSumStride + v * kLanes);
}

// One element of K for a strip. What there is less of waits in registers: with 16 of them, 12 of
// which hold sums, the order matters.
template <int kRows>
HWY_INLINE void add_element(const float* HWY_RESTRICT weights,
                            const float* HWY_RESTRICT tokens,
                            FloatVector (*sum)[kStripVectors]) {
  const Floats floats;
  if constexpr (kRows < kStripVectors) {
    FloatVector token[kRows];
    for (int row = 0; row < kRows; ++row)
      token[row] = hn::Set(floats, tokens[row * kChunk]);
    for (int v = 0; v < kStripVectors; ++v) {
      const auto weight = hn::LoadU(floats, weights + v * kLanes);
      for (int row = 0; row < kRows; ++row)
        sum[row][v] = hn::MulAdd(token[row], weight, sum[row][v]);
    }
  } else {
    FloatVector weight[kStripVectors];
    for (int v = 0; v < kStripVectors; ++v)
      weight[v] = hn::LoadU(floats, weights + v * kLanes);
    for (int row = 0; row < kRows; ++row) {
      const auto token = hn::Set(floats, tokens[row * kChunk]);
      for (int v = 0; v < kStripVectors; ++v)
        sum[row][v] = hn::MulAdd(token, weight[v], sum[row][v]);
    }
  }
}

// One strip of sums over one chunk.
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
    add_element<kRows>(weights + (k + 1) * kPanelRows, tokens + k + 1, sum);
    add_element<kRows>(weights + k * kPanelRows, tokens + k, sum);
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

inline void multiply_chunk(const PanelProduct& product,
                           int first_group,
                           int groups,
                           TileScratch& scratch) {
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
    for (int index = 0; index < product.num_panels; ++index)
      multiply_strips<kStripRows>(
          rows,
          weights + static_cast<std::size_t>(index) * kPanelChunk,
          tokens,
          count,
          scratch.sums + row * TileScratch::kSumStride + index * kPanelRows);
  }
}

inline void multiply_chunks(const PanelProduct& product, TileScratch& scratch) {
  auto* const weights = reinterpret_cast<float*>(scratch.weights);
  for (int i = 0; i < product.num_rows * TileScratch::kSumStride; i += kLanes)
    hn::StoreU(hn::Zero(Floats()), Floats(), scratch.sums + i);
  const int all_groups = product.k / kGroupSize;
  for (int first = 0; first < all_groups; first += kChunkGroups) {
    const int groups = HWY_MIN(all_groups - first, kChunkGroups);
    for (int index = 0; index < product.num_panels; ++index) {
      const Decoder decoder(product.panels[index]);
      float* chunk = weights + static_cast<std::size_t>(index) * kPanelChunk;
      for (int i = 0; i < groups; ++i)
        decode_group(decoder, first + i, chunk + i * kGroupSize * kPanelRows);
    }
    multiply_chunk(product, first, groups, scratch);
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
  if (product.num_rows > kUnchunkedRows) multiply_chunks(product, scratch);
  for (int index = 0; index < product.num_panels; ++index) {
    const Panel& panel = product.panels[index];
    float* const sums = scratch.sums + index * kPanelRows;
    if (product.num_rows == 1) multiply_codes<1>(panel, product, sums);
    if (product.num_rows == 2) multiply_codes<2>(panel, product, sums);
    scale_sums(*panel.header, product.num_rows, sums);
  }
}

#  endif
}  // namespace HWY_NAMESPACE
}  // namespace megamoe::cpu
HWY_AFTER_NAMESPACE();

#endif
