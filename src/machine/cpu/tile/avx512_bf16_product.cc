#include "machine/cpu/tile/avx512_bf16_product.hpp"

#include <hwy/base.h>

#include <array>
#include <bit>
#include <cstring>

#include "numerics/bfloat16.hpp"
#include "numerics/exponential.hpp"
#include "numerics/float4.hpp"

#if HWY_ARCH_X86_64
#  include <immintrin.h>

// As Highway compiles its targets: the attribute holds from here on, so that no inline function of
// a header above is compiled with instructions that the computer may lack.
HWY_PUSH_ATTRIBUTES("avx512f,avx512vl,avx512dq,avx512bw,avx512bf16")
namespace megamoe::cpu {
namespace {

constexpr std::size_t kSumStride = TileScratch::kSumStride;
constexpr int kWordsPerGroup = kGroupSize / 8;
constexpr int kStripRows = 12;  // by 2 vectors of sums: 24 of 32 registers
constexpr std::ptrdiff_t kTokenPairBytes = 4;
// How far ahead of their use codes are asked for: more than what a core takes in while memory
// answers.
constexpr std::size_t kPrefetchBytes = 4096;

// Weights are decoded as value * 2^kBias * 2^shift, by adding the shift to the exponent of a value
// from a table. The addition also makes 2^(shift - 127) of a zero. (One that leaves zeros alone, a
// saturating one, competes with the dot products for their two ports; this one runs beside them.)
//
// These false zeros leave no trace. Products are multiples of 2^kLeastProduct, and so is every sum.
// All false zeros of a row together stay below 2^kNoise, which is less than half of the last place
// of any sum but zero: such a sum is rounded to the bits that it has with true zeros. What ends up
// below the least product is zero, and store_scaled makes it so.
constexpr int kBias = 48;
constexpr int kLeastProduct = -9 + kLeastFoldedExponent + kBias - 1;
constexpr int kLog2LargestK = std::bit_width(unsigned{kMaxTileWidth}) - 1;
constexpr int kNoise = 9 + kLargestFoldedExponent + kLargestFoldedShift - 127 + kLog2LargestK;
constexpr int kLargestSum =
    9 + kLargestFoldedExponent + 3 + kBias + kLargestFoldedShift + kLog2LargestK;
static_assert(kNoise < kLeastProduct - 24 && kLargestSum <= 127);

// Each of the 16 values twice, so that bit 4 of an index, which belongs to the next nibble, does
// not matter.
constexpr int kTableSize = 32;
constexpr std::array<std::uint16_t, kTableSize> biased_values() {
  std::array<std::uint16_t, kTableSize> table{};
  for (unsigned i = 0; i < kTableSize; ++i) {
    const Float4E2M1 code{static_cast<std::uint8_t>(i & 15U)};
    table[i] = to_bfloat16(to_float(code) * power_of_two(kBias)).bits;
  }
  return table;
}
alignas(64) constexpr auto kValues = biased_values();

// From 32 shifts to those of 16 rows, each for both elements of a pair.
alignas(64) constexpr std::uint16_t kTwice[2][32] = {
    {0, 0, 1, 1, 2,  2,  3,  3,  4,  4,  5,  5,  6,  6,  7,  7,
     8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13, 14, 14, 15, 15},
    {16, 16, 17, 17, 18, 18, 19, 19, 20, 20, 21, 21, 22, 22, 23, 23,
     24, 24, 25, 25, 26, 26, 27, 27, 28, 28, 29, 29, 30, 30, 31, 31}};

// The decoding of one group: codes of both halves of the panel to bf16, in pairs along K.
struct Decoder {
  __m512i values = _mm512_load_si512(kValues.data());
  __m512i shifts[2];

  HWY_INLINE explicit Decoder(const std::uint8_t* group_shifts) {
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(group_shifts));
    const __m512i in_exponent = _mm512_slli_epi16(_mm512_cvtepu8_epi16(bytes), 7);
    for (int half = 0; half < 2; ++half)
      shifts[half] = _mm512_permutexvar_epi16(_mm512_load_si512(kTwice[half]), in_exponent);
  }

  HWY_INLINE __m512bh operator()(int half, __m512i codes) const {
    const __m512i unscaled = _mm512_permutexvar_epi16(codes, values);
    return reinterpret_cast<__m512bh>(_mm512_add_epi16(unscaled, shifts[half]));
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

  HWY_INLINE Sums() {
    for (int row = 0; row < kRows; ++row)
      for (int half = 0; half < 2; ++half)
        of[row][half] = _mm512_setzero_ps();
  }

  // One pair along K; the dot product adds its odd element first.
  HWY_INLINE void add(__m512bh low, __m512bh high, const std::byte* pair, std::size_t stride) {
#  pragma GCC unroll 16
    for (int row = 0; row < kRows; ++row) {
      const __m512bh token = broadcast_pair(pair + static_cast<std::size_t>(row) * stride);
      of[row][0] = _mm512_dpbf16_ps(of[row][0], low, token);
      of[row][1] = _mm512_dpbf16_ps(of[row][1], high, token);
    }
  }

  // In two factors, as their product may be beyond the least fp32. A NaN is no noise.
  HWY_INLINE void store_scaled(const float* scales, float* sums) const {
    constexpr float kUnbias = power_of_two(-kBias);
    constexpr float kLeastSum = power_of_two(kLeastProduct - 1);
    const __m512 unbias = _mm512_set1_ps(kUnbias);
    const __m512 least = _mm512_set1_ps(kLeastSum);
    const __m512 scale[2] = {_mm512_load_ps(scales), _mm512_load_ps(scales + kHalfPanelRows)};
    for (int row = 0; row < kRows; ++row) {
      for (int half = 0; half < 2; ++half) {
        const __m512 sum = of[row][half];
        const __mmask16 is_sum = _mm512_cmp_ps_mask(_mm512_abs_ps(sum), least, _CMP_NLT_UQ);
        const __m512 unbiased = _mm512_maskz_mul_ps(is_sum, sum, unbias);
        _mm512_store_ps(sums + half * kHalfPanelRows, _mm512_mul_ps(unbiased, scale[half]));
      }
      sums += kSumStride;
    }
  }
};

// Codes are decoded in registers, on their way through; a tall tile decodes them once per strip,
// for which the ports beside those of the dot products have the time.
template <int kRows>
void multiply_strip(const Panel& panel, int groups, const Strip& strip) {
  Sums<kRows> sums;
  const std::uint8_t* codes = panel.codes;
  const std::byte* pair = strip.tokens;
  for (int group = 0; group < groups; ++group) {
    const Decoder decode(panel.shifts + group * kPanelRows);
    for (int word = 0; word < kWordsPerGroup; ++word) {
      __m512i low = _mm512_load_si512(codes);
      __m512i high = _mm512_load_si512(codes + 64);
      _mm_prefetch(codes + kPrefetchBytes, _MM_HINT_T0);
      _mm_prefetch(codes + kPrefetchBytes + 64, _MM_HINT_T0);
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
  sums.store_scaled(panel.header->scale, strip.sums);
}

template <int kRows>
void multiply_strip(int rows, const Panel& panel, int groups, const Strip& strip) {
  if constexpr (kRows > 1) {
    if (rows < kRows) return multiply_strip<kRows - 1>(rows, panel, groups, strip);
  }
  multiply_strip<kRows>(panel, groups, strip);
}

// Strips of nearly equal height.
int strip_rows(int rows_left) {
  const int strips = (rows_left + kStripRows - 1) / kStripRows;
  return (rows_left + strips - 1) / strips;
}

void multiply(const PanelProduct& product, TileScratch& scratch) {
  for (int index = 0; index < product.num_panels; ++index) {
    float* const sums = scratch.sums + index * kPanelRows;
    for (int row = 0; row < product.num_rows;) {
      const int rows = strip_rows(product.num_rows - row);
      const auto at = static_cast<std::size_t>(row);
      multiply_strip<kStripRows>(rows,
                                 product.panels[index],
                                 product.k / kGroupSize,
                                 {.tokens = product.rows.data + at * product.rows.stride,
                                  .stride = product.rows.stride,
                                  .sums = sums + at * kSumStride});
      row += rows;
    }
  }
}

}  // namespace

float multiply_bf16_registers(int rounds) {
  __m512 sums[kBf16PeakSums];
  for (__m512& sum : sums)
    sum = _mm512_setzero_ps();
  const auto ones = reinterpret_cast<__m512bh>(_mm512_set1_epi32(0x3F803F80));
  for (int i = 0; i < rounds; ++i) {
#  pragma GCC unroll 12
    for (__m512& sum : sums)
      sum = _mm512_dpbf16_ps(sum, ones, ones);
    asm volatile("" : "+r"(i));
  }
  float total = 0;
  for (const __m512& sum : sums)
    total += _mm512_cvtss_f32(sum);
  return total;
}

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
float multiply_bf16_registers(int) {
  return 0;
}
}  // namespace megamoe::cpu

#endif
