// The register loop of the sets that Highway compiles. Included once per target by
// highway_functions.cc.
#if defined(MEGAMOE_HIGHWAY_PEAK_INL) == defined(HWY_TARGET_TOGGLE)
#  ifdef MEGAMOE_HIGHWAY_PEAK_INL
#    undef MEGAMOE_HIGHWAY_PEAK_INL
#  else
#    define MEGAMOE_HIGHWAY_PEAK_INL
#  endif

#  include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace megamoe::cpu {  // NOLINT(modernize-concat-nested-namespaces): the inner one is a macro
namespace HWY_NAMESPACE {
#  if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128

inline constexpr int kPeakSums = 12;  // more than a multiplication's latency, in instructions
inline constexpr double kPeakFlopsOfRound =
    2.0 * kPeakSums * hwy::HWY_NAMESPACE::MaxLanes(hwy::HWY_NAMESPACE::CappedTag<float, 16>());

float multiply_registers(int rounds) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::CappedTag<float, 16> floats;
  const volatile float half = 0.5F;  // read at run time, else a compiler may know the sums
  const auto factor = hn::Set(floats, half);
  hn::Vec<decltype(floats)> sums[kPeakSums];
  for (auto& sum : sums)
    sum = factor;
  for (int i = 0; i < rounds; ++i) {
    for (auto& sum : sums)
      sum = hn::MulAdd(sum, factor, factor);
    asm volatile("" : "+r"(i));  // else the compiler finds that the sums stay what they are
  }
  auto total = sums[0];
  for (int j = 1; j < kPeakSums; ++j)
    total = hn::Add(total, sums[j]);
  return hn::GetLane(total);
}

#  endif
}  // namespace HWY_NAMESPACE
}  // namespace megamoe::cpu
HWY_AFTER_NAMESPACE();

#endif
