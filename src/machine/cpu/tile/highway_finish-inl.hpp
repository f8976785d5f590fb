// What stands around the product, for the sets that Highway compiles: pool rows, activation,
// quantising, rounding. Vector forms of numerics/{exponential,swiglu,quantize,float8,bfloat16}.hpp,
// step for step: the same bits where the set has fused multiply-adds. Included once per target by
// highway_functions.cc.
#if defined(MEGAMOE_HIGHWAY_FINISH_INL) == defined(HWY_TARGET_TOGGLE)
#  ifdef MEGAMOE_HIGHWAY_FINISH_INL
#    undef MEGAMOE_HIGHWAY_FINISH_INL
#  else
#    define MEGAMOE_HIGHWAY_FINISH_INL
#  endif

#  include <hwy/highway.h>

#  include "numerics/exponential.hpp"
#  include "numerics/quantize.hpp"

HWY_BEFORE_NAMESPACE();
namespace megamoe::cpu {  // NOLINT(modernize-concat-nested-namespaces): the inner one is a macro
namespace HWY_NAMESPACE {
#  if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
namespace hn = hwy::HWY_NAMESPACE;

using FinishFloats = hn::CappedTag<float, kHalfPanelRows>;
using FinishWords = hn::Rebind<std::int32_t, FinishFloats>;
using FinishVector = hn::Vec<FinishFloats>;
using WordVector = hn::Vec<FinishWords>;

inline constexpr int kFinishLanes = static_cast<int>(hn::MaxLanes(FinishFloats()));
inline constexpr int kGroupVectors = kGroupSize / kFinishLanes;

HWY_INLINE WordVector words_of(FinishVector values) {
  return hn::BitCast(FinishWords(), values);
}
HWY_INLINE FinishVector floats_of(WordVector bits) {
  return hn::BitCast(FinishFloats(), bits);
}
HWY_INLINE WordVector magnitude_bits(FinishVector values) {
  return hn::And(words_of(values), hn::Set(FinishWords(), 0x7FFF'FFFF));
}
HWY_INLINE FinishVector power_of_two(WordVector exponent) {
  return floats_of(hn::ShiftLeft<23>(hn::Add(exponent, hn::Set(FinishWords(), 127))));
}

// To bf16, still in 32-bit lanes, the low half zero.
HWY_INLINE WordVector rounded_to_bfloat16(FinishVector values) {
  const FinishWords words;
  const WordVector bits = words_of(values);
  const WordVector is_odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(words, 1));
  const WordVector rounded =
      hn::And(hn::Add(hn::Add(bits, hn::Set(words, 0x7FFF)), is_odd), hn::Set(words, ~0xFFFF));
  const auto is_nan = hn::Gt(magnitude_bits(values), hn::Set(words, 0x7F80'0000));
  return hn::IfThenElse(is_nan, hn::Set(words, int{Bfloat16::kNan} << 16), rounded);
}

// Stores what rounded_to_bfloat16 gave.
HWY_INLINE void store_bfloat16(WordVector rounded, void* to) {
  const hn::Rebind<std::uint16_t, FinishWords> narrow;
  const hn::RebindToUnsigned<FinishWords> unsigned_words;
  const auto high = hn::ShiftRight<16>(hn::BitCast(unsigned_words, rounded));
  hn::StoreU(hn::TruncateTo(narrow, high), narrow, static_cast<std::uint16_t*>(to));
}

HWY_INLINE FinishVector exponential(FinishVector x) {
  using Terms = ExponentialTerms;
  const FinishFloats floats;
  const auto lowest = hn::Set(floats, Terms::kLowest);
  const auto highest = hn::Set(floats, Terms::kHighest);
  const auto to_integer = hn::Set(floats, Terms::kToInteger);
  const auto above = hn::IfThenElse(hn::Lt(x, lowest), lowest, x);
  const auto bounded = hn::IfThenElse(hn::Gt(above, highest), highest, above);

  const auto shifted = hn::MulAdd(bounded, hn::Set(floats, Terms::kLog2E), to_integer);
  const auto n = hn::Sub(shifted, to_integer);
  auto r = hn::MulAdd(n, hn::Set(floats, -Terms::kLn2High), bounded);
  r = hn::MulAdd(n, hn::Set(floats, -Terms::kLn2Low), r);

  auto series = hn::MulAdd(hn::Set(floats, Terms::kC6), r, hn::Set(floats, Terms::kC5));
  series = hn::MulAdd(series, r, hn::Set(floats, Terms::kC4));
  series = hn::MulAdd(series, r, hn::Set(floats, Terms::kC3));
  series = hn::MulAdd(series, r, hn::Set(floats, Terms::kC2));
  const auto value = hn::Add(hn::MulAdd(series, hn::Mul(r, r), r), hn::Set(floats, 1.0F));

  const auto exponent = hn::Sub(words_of(shifted), words_of(to_integer));
  const auto half = hn::ShiftRight<1>(exponent);
  return hn::Mul(hn::Mul(value, power_of_two(half)), power_of_two(hn::Sub(exponent, half)));
}

HWY_INLINE FinishVector at_most(FinishVector value, FinishVector bound) {
  return hn::IfThenElse(hn::Gt(value, bound), bound, value);
}
HWY_INLINE FinishVector at_least(FinishVector value, FinishVector bound) {
  return hn::IfThenElse(hn::Lt(value, bound), bound, value);
}

// fast_math needs no form of its own: the precise one is a small part of a tile's time.
HWY_INLINE FinishVector gated_activation(FinishVector gate,
                                         FinishVector up,
                                         float routing_weight,
                                         const Activation& activation) {
  const FinishFloats floats;
  const bool is_oai = activation.kind == ActivationKind::kSwigluOai;
  const auto bound = hn::Set(floats, is_oai ? activation.limit : activation.clamp);
  const auto one = hn::Set(floats, 1.0F);
  gate = at_most(gate, bound);
  up = at_least(at_most(up, bound), hn::Neg(bound));
  const auto slope = is_oai ? hn::Mul(hn::Set(floats, activation.alpha), gate) : gate;
  const auto linear = is_oai ? hn::Add(up, one) : up;
  const auto sigmoid_of = hn::Div(gate, hn::Add(one, exponential(hn::Neg(slope))));
  return hn::Mul(hn::Mul(sigmoid_of, linear), hn::Set(floats, routing_weight));
}

// The value of the nearest E4M3 number, for magnitudes of at most 448.
HWY_INLINE FinishVector rounded_to_float8(FinishVector values) {
  const FinishFloats floats;
  const FinishWords words;
  const WordVector magnitude = magnitude_bits(values);
  const WordVector is_odd = hn::And(hn::ShiftRight<20>(magnitude), hn::Set(words, 1));
  const WordVector normal = hn::And(hn::Add(hn::Add(magnitude, hn::Set(words, 0x7'FFFF)), is_odd),
                                    hn::Set(words, ~0xF'FFFF));
  // Below the least normal number the grid is 2^-9, the last place of an fp32 in [2^14, 2^15).
  const auto grid = hn::Set(floats, 0x1p14F);
  const auto subnormal = words_of(hn::Sub(hn::Add(floats_of(magnitude), grid), grid));
  const auto is_subnormal = hn::Lt(magnitude, hn::Set(words, std::bit_cast<std::int32_t>(0x1p-6F)));
  const auto sign = hn::Xor(words_of(values), magnitude);
  return floats_of(hn::Or(hn::IfThenElse(is_subnormal, subnormal, normal), sign));
}

struct GroupPlace {
  int group;
  int k;
  std::byte* row;

  std::uint16_t* values() const {
    return reinterpret_cast<std::uint16_t*>(row) + group * kGroupSize;
  }
  void set_scale(Ue8m0 scale) const {
    row[row_scales_offset(k) + static_cast<std::size_t>(group)] = std::byte{scale.bits};
  }
};

// What a group's values are multiplied with on their way into a pool row.
HWY_INLINE float fold_factor(Ue8m0 scale) {
  if (is_nan(scale)) return to_float(scale);
  return megamoe::power_of_two(scale.exponent() - remaining_exponent(scale));
}

HWY_INLINE void store_quantized(const FinishVector* values, const GroupPlace& place) {
  const FinishFloats floats;
  const FinishWords words;
  WordVector largest = magnitude_bits(values[0]);
  for (int v = 1; v < kGroupVectors; ++v)
    largest = hn::Max(largest, magnitude_bits(values[v]));
  const auto amax_bits = static_cast<std::uint32_t>(hn::GetLane(hn::MaxOfLanes(words, largest)));
  const Ue8m0 scale = activation_scale(amax_bits);
  const auto unscale = hn::Set(floats, is_nan(scale) ? to_float(scale) : reciprocal(scale));
  const auto fold = hn::Set(floats, fold_factor(scale));
  for (int v = 0; v < kGroupVectors; ++v) {
    const auto code_value = rounded_to_float8(hn::Mul(values[v], unscale));
    store_bfloat16(rounded_to_bfloat16(hn::Mul(code_value, fold)),
                   place.values() + v * kFinishLanes);
  }
  place.set_scale(scale);
}

// E4M3 codes, in 32-bit lanes, to their values.
HWY_INLINE FinishVector float8_values(WordVector codes) {
  const FinishFloats floats;
  const FinishWords words;
  const auto magnitude = hn::And(codes, hn::Set(words, 0x7F));
  const auto sign = hn::ShiftLeft<24>(hn::And(codes, hn::Set(words, 0x80)));
  const auto normal = hn::Add(hn::ShiftLeft<20>(magnitude), hn::Set(words, 120 << 23));
  const auto subnormal =
      words_of(hn::Mul(hn::ConvertTo(floats, magnitude), hn::Set(floats, 0x1p-9F)));
  auto bits = hn::IfThenElse(hn::Lt(magnitude, hn::Set(words, 8)), subnormal, normal);
  const auto is_nan = hn::Eq(magnitude, hn::Set(words, int{Float8E4M3::kNan}));
  bits = hn::IfThenElse(is_nan, hn::Set(words, 0x7FC0'0000), bits);
  return floats_of(hn::Or(bits, sign));
}

inline void store_row(const std::uint8_t* codes,
                      const std::uint8_t* scales,
                      int k,
                      std::byte* row) {
  const FinishFloats floats;
  const FinishWords words;
  const hn::Rebind<std::uint8_t, FinishWords> bytes;
  for (int group = 0; group < k / kGroupSize; ++group) {
    const GroupPlace place{.group = group, .k = k, .row = row};
    const Ue8m0 scale{scales[group]};
    const auto fold = hn::Set(floats, fold_factor(scale));
    WordVector seen = hn::Zero(words);
    for (int v = 0; v < kGroupVectors; ++v) {
      const auto code =
          hn::PromoteTo(words, hn::LoadU(bytes, codes + group * kGroupSize + v * kFinishLanes));
      seen = hn::Or(seen, code);
      store_bfloat16(rounded_to_bfloat16(hn::Mul(float8_values(code), fold)),
                     place.values() + v * kFinishLanes);
    }
    seen = hn::And(seen, hn::Set(words, 0x7F));
    const bool is_zero = hn::AllTrue(words, hn::Eq(seen, hn::Zero(words)));
    place.set_scale(is_zero && !is_nan(scale) ? Ue8m0{} : scale);
  }
}

inline void finish_linear1(const Linear1Finish& finish) {
  const FinishFloats floats;
  for (int row = 0; row < finish.num_rows; ++row) {
    const float* sums = finish.sums + row * TileScratch::kSumStride;
    FinishVector activated[kGroupVectors];
    for (int v = 0; v < kGroupVectors; ++v) {
      const int first = v * kFinishLanes;
      const int lane = first % kHalfPanelRows + first / kHalfPanelRows * kPanelRows;
      auto gate = hn::LoadU(floats, sums + lane);
      auto up = hn::LoadU(floats, sums + lane + kHalfPanelRows);
      if (finish.gate_bias != nullptr) {
        gate = hn::Add(gate, hn::LoadU(floats, finish.gate_bias + first));
        up = hn::Add(up, hn::LoadU(floats, finish.up_bias + first));
      }
      activated[v] = gated_activation(floats_of(rounded_to_bfloat16(gate)),
                                      floats_of(rounded_to_bfloat16(up)),
                                      finish.routing_weights[row],
                                      finish.activation);
    }
    store_quantized(activated,
                    {.group = finish.group,
                     .k = finish.k,
                     .row = finish.rows.data + static_cast<std::size_t>(row) * finish.rows.stride});
  }
}

inline void finish_linear2(const Linear2Finish& finish) {
  const FinishFloats floats;
  for (int row = 0; row < finish.num_rows; ++row) {
    const float* sums = finish.sums + row * TileScratch::kSumStride;
    Bfloat16* output = finish.output + static_cast<std::size_t>(row) * finish.output_stride;
    for (int lane = 0; lane < kPanelRows; lane += kFinishLanes) {
      auto value = hn::LoadU(floats, sums + lane);
      if (finish.bias != nullptr) {
        const auto weight = hn::Set(floats, finish.routing_weights[row]);
        value = hn::Add(value, hn::Mul(weight, hn::LoadU(floats, finish.bias + lane)));
      }
      store_bfloat16(rounded_to_bfloat16(value), output + lane);
    }
  }
}

#  endif
}  // namespace HWY_NAMESPACE
}  // namespace megamoe::cpu
HWY_AFTER_NAMESPACE();

#endif
