#include "machine/cpu/tile/highway_functions.hpp"

#include <hwy/detect_targets.h>

// Left out are the targets between the sets that InstructionSet names, and vectors whose size is
// not known when compiling: the product keeps its sums in arrays of vectors.
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "machine/cpu/tile/highway_functions.cc"
#include <hwy/foreach_target.h>

#include "machine/cpu/tile/highway_finish-inl.hpp"
#include "machine/cpu/tile/highway_peak-inl.hpp"
#include "machine/cpu/tile/highway_product-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace megamoe::cpu {  // NOLINT(modernize-concat-nested-namespaces): the inner one is a macro
namespace HWY_NAMESPACE {
#if HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
const TileFunctions* functions() {
  static constexpr TileFunctions kFunctions{.multiply = multiply,
                                            .finish_linear1 = finish_linear1,
                                            .finish_linear2 = finish_linear2,
                                            .store_row = store_row,
                                            .multiply_registers = multiply_registers,
                                            .flops_of_round = kPeakFlopsOfRound};
  return &kFunctions;
}
#else
const TileFunctions* functions() {
  return nullptr;
}
#endif
}  // namespace HWY_NAMESPACE
}  // namespace megamoe::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace megamoe::cpu {

// Not Highway's own dispatch: that one always picks the best, and a set can be forced here.
const TileFunctions* highway_functions(InstructionSet set) {
  switch (set) {
#  if HWY_TARGETS & HWY_NEON
    case InstructionSet::kNeon: return N_NEON::functions();
#  endif
#  if HWY_TARGETS & HWY_SSE4
    case InstructionSet::kSse4: return N_SSE4::functions();
#  endif
#  if HWY_TARGETS & HWY_AVX2
    case InstructionSet::kAvx2: return N_AVX2::functions();
#  endif
#  if HWY_TARGETS & HWY_AVX3
    case InstructionSet::kAvx512: return N_AVX3::functions();
#  endif
    default: return nullptr;
  }
}

}  // namespace megamoe::cpu
#endif
