#include "machine/cpu/tile/avx512_bf16_product.hpp"

#include <hwy/base.h>

#include <algorithm>
#include <cstring>

#include "base/portable.hpp"

#if HWY_ARCH_X86_64
#  include <immintrin.h>

// As Highway compiles its targets: the attribute holds from here on, so that no inline function of
// a header above is compiled with instructions that the computer may lack.
HWY_PUSH_ATTRIBUTES("avx512f,avx512vl,avx512dq,avx512bw,avx512bf16")
namespace megamoe::cpu {
namespace {

constexpr std::size_t kSumStride = TileScratch::kSumStride;
constexpr int kWordsPerGroup = kGroupSize / 8;
constexpr int kStripRows = TileScratch::kStripRows;  // by 2 vectors of sums: 24 of 32 registers
constexpr std::ptrdiff_t kTokenPairBytes = 4;
constexpr std::ptrdiff_t kTokenGroupBytes = 2 * kGroupSize;

// Each of the 16 values twice, so that bit 4 of an index, which belongs to the next nibble, does
// not matter. -0 is +0: the subtraction of a shift has to leave zeros as they are.
alignas(64) constexpr std::uint16_t kValues[32] = {
    0, 0x3F00, 0x3F80, 0x3FC0, 0x4000, 0x4040, 0x4080, 0x40C0,  //
    0, 0xBF00, 0xBF80, 0xBFC0, 0xC000, 0xC040, 0xC080, 0xC0C0,  //
    0, 0x3F00, 0x3F80, 0x3FC0, 0x4000, 0x4040, 0x4080, 0x40C0,  //
    0, 0xBF00, 0xBF80, 0xBFC0, 0xC000, 0xC040, 0xC080, 0xC0C0};

// From 32 shifts to those of 16 rows, each for both elements of a pair.
alignas(64) constexpr std::uint16_t kTwice[2][32] = {
    {0, 0, 1, 1, 2,  2,  3,  3,  4,  4,  5,  5,  6,  6,  7,  7,
     8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13, 14, 14, 15, 15},
    {16, 16, 17, 17, 18, 18, 19, 19, 20, 20, 21, 21, 22, 22, 23, 23,
     24, 24, 25, 25, 26, 26, 27, 27, 28, 28, 29, 29, 30, 30, 31, 31}};

// The decoding of one group: codes of both halves of the panel to bf16, in pairs along K.
struct Decoder {
  __m512i values = _mm512_load_si512(kValues);
  __m512i shifts[2];

  HWY_INLINE explicit Decoder(const std::uint8_t* group_shifts) {
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(group_shifts));
    const __m512i in_exponent = _mm512_slli_epi16(_mm512_cvtepu8_epi16(bytes), 7);
    for (int half = 0; half < 2; ++half)
      shifts[half] = _mm512_permutexvar_epi16(_mm512_load_si512(kTwice[half]), in_exponent);
  }

  // The unsigned saturation leaves zeros alone and touches nothing else.
  HWY_INLINE __m512bh operator()(int half, __m512i codes) const {
    const __m512i unscaled = _mm512_permutexvar_epi16(codes, values);
    return reinterpret_cast<__m512bh>(_mm512_subs_epu16(unscaled, shifts[half]));
  }
};

// A few rows of a tile.
struct Strip {
  const std::byte* tokens;
  std::size_t stride;
  float* sums;
};

HWY_INLINE __m512bh broadcast_pair(const std::byte* pair) {
  std::int32_t bits = 0;
  std::memcpy(&bits, pair, sizeof bits);
  return reinterpret_cast<__m512bh>(_mm512_set1_epi32(bits));
}

template <int kRows>
struct Sums {
  __m512 of[kRows][2];

  HWY_INLINE void clear() {
    for (int row = 0; row < kRows; ++row)
      for (int half = 0; half < 2; ++half)
        of[row][half] = _mm512_setzero_ps();
  }
  HWY_INLINE void load(const float* sums) {
    for (int row = 0; row < kRows; ++row)
      for (int half = 0; half < 2; ++half)
        of[row][half] = _mm512_load_ps(sums + row * kSumStride + half * kHalfPanelRows);
  }
  HWY_INLINE void store(float* sums) const {
    for (int row = 0; row < kRows; ++row)
      for (int half = 0; half < 2; ++half)
        _mm512_store_ps(sums + row * kSumStride + half * kHalfPanelRows, of[row][half]);
  }
  HWY_INLINE void scale(const float* scales) {
    for (int row = 0; row < kRows; ++row)
      for (int half = 0; half < 2; ++half)
        of[row][half] =
            _mm512_mul_ps(of[row][half], _mm512_load_ps(scales + half * kHalfPanelRows));
  }
  // One pair along K.
  HWY_INLINE void add(__m512bh low, __m512bh high, const std::byte* pair, std::size_t stride) {
#  pragma GCC unroll 16
    for (int row = 0; row < kRows; ++row) {
      const __m512bh token = broadcast_pair(pair + static_cast<std::size_t>(row) * stride);
      of[row][0] = _mm512_dpbf16_ps(of[row][0], low, token);
      of[row][1] = _mm512_dpbf16_ps(of[row][1], high, token);
    }
  }
};

// Few rows: codes are decoded in registers, on their way through.
template <int kRows>
void multiply_codes(const Panel& panel, int groups, const Strip& strip) {
  Sums<kRows> sums;
  sums.clear();
  const std::uint8_t* codes = panel.codes;
  const std::byte* pair = strip.tokens;
  for (int group = 0; group < groups; ++group) {
    const Decoder decode(panel.shifts + group * kPanelRows);
    for (int word = 0; word < kWordsPerGroup; ++word) {
      __m512i low = _mm512_load_si512(codes);
      __m512i high = _mm512_load_si512(codes + 64);
#  pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        sums.add(decode(0, low), decode(1, high), pair + i * kTokenPairBytes, strip.stride);
        low = _mm512_srli_epi16(low, 4);
        high = _mm512_srli_epi16(high, 4);
      }
      codes += 128;
      pair += 4 * kTokenPairBytes;
    }
  }
  sums.scale(panel.header->scale);
  sums.store(strip.sums);
}

// weights[pair of K][half][row][2], of `groups` groups.
void decode_chunk(const Panel& panel, int first_group, int groups, std::byte* weights) {
  for (int group = first_group; group < first_group + groups; ++group) {
    const Decoder decode(panel.shifts + group * kPanelRows);
    const std::uint8_t* codes = panel.codes + static_cast<std::size_t>(group) * kCodeBytesPerGroup;
    for (int word = 0; word < kWordsPerGroup; ++word) {
      __m512i low = _mm512_load_si512(codes + 128 * word);
      __m512i high = _mm512_load_si512(codes + 128 * word + 64);
#  pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        _mm512_store_si512(weights, reinterpret_cast<__m512i>(decode(0, low)));
        _mm512_store_si512(weights + 64, reinterpret_cast<__m512i>(decode(1, high)));
        low = _mm512_srli_epi16(low, 4);
        high = _mm512_srli_epi16(high, 4);
        weights += 128;
      }
    }
  }
}

// A chunk of K for some rows, from decoded weights.
struct Chunk {
  const std::byte* weights;
  int pairs;
  bool is_first;
  const float* last_scales;  // null unless it is the last
};

template <int kRows>
void multiply_chunk(const Chunk& chunk, const Strip& strip) {
  Sums<kRows> sums;
  if (chunk.is_first)
    sums.clear();
  else
    sums.load(strip.sums);
  const std::byte* weights = chunk.weights;
  const std::byte* pair = strip.tokens;
#  pragma GCC unroll 2
  for (int i = 0; i < chunk.pairs; ++i) {
    sums.add(reinterpret_cast<__m512bh>(_mm512_load_si512(weights)),
             reinterpret_cast<__m512bh>(_mm512_load_si512(weights + 64)),
             pair,
             strip.stride);
    weights += 128;
    pair += kTokenPairBytes;
  }
  if (chunk.last_scales != nullptr) sums.scale(chunk.last_scales);
  sums.store(strip.sums);
}

template <int kRows>
void multiply_codes(int rows, const Panel& panel, int groups, const Strip& strip) {
  if constexpr (kRows > 1) {
    if (rows < kRows) return multiply_codes<kRows - 1>(rows, panel, groups, strip);
  }
  multiply_codes<kRows>(panel, groups, strip);
}

template <int kRows>
void multiply_chunk(int rows, const Chunk& chunk, const Strip& strip) {
  if constexpr (kRows > 1) {
    if (rows < kRows) return multiply_chunk<kRows - 1>(rows, chunk, strip);
  }
  multiply_chunk<kRows>(chunk, strip);
}

// Strips of nearly equal height.
int strip_rows(int rows_left) {
  const int strips = (rows_left + kStripRows - 1) / kStripRows;
  return (rows_left + strips - 1) / strips;
}

void multiply_tall(const PanelProduct& product,
                   const Panel& panel,
                   std::byte* weights,
                   float* sums) {
  const int all_groups = product.k / kGroupSize;
  for (int first = 0; first < all_groups; first += TileScratch::kChunkGroups) {
    const int groups = std::min(all_groups - first, TileScratch::kChunkGroups);
    decode_chunk(panel, first, groups, weights);
    const Chunk chunk{.weights = weights,
                      .pairs = groups * kGroupSize / 2,
                      .is_first = first == 0,
                      .last_scales = first + groups == all_groups ? panel.header->scale : nullptr};
    for (int row = 0; row < product.num_rows;) {
      const int rows = strip_rows(product.num_rows - row);
      const auto at = static_cast<std::size_t>(row);
      multiply_chunk<kStripRows>(
          rows,
          chunk,
          {.tokens = product.rows.data + at * product.rows.stride + first * kTokenGroupBytes,
           .stride = product.rows.stride,
           .sums = sums + at * kSumStride});
      row += rows;
    }
  }
}

void multiply(const PanelProduct& product, TileScratch& scratch) {
  auto* weights = reinterpret_cast<std::byte*>(scratch.weights);
  for (int index = 0; index < product.num_panels; ++index) {
    const Panel& panel = product.panels[index];
    float* sums = scratch.sums + index * kPanelRows;
    if (product.num_rows <= kStripRows)
      multiply_codes<kStripRows>(
          product.num_rows,
          panel,
          product.k / kGroupSize,
          {.tokens = product.rows.data, .stride = product.rows.stride, .sums = sums});
    else
      multiply_tall(product, panel, weights, sums);
  }
}

}  // namespace
}  // namespace megamoe::cpu
HWY_POP_ATTRIBUTES

namespace megamoe::cpu {
MultiplyFunction avx512_bf16_product() {
  return multiply;
}
}  // namespace megamoe::cpu

#else

namespace megamoe::cpu {
MultiplyFunction avx512_bf16_product() {
  return nullptr;
}
}  // namespace megamoe::cpu

#endif
