#include "base/check.hpp"
#include "runtime/gpu/emulated_kernels.hpp"

namespace megamoe {

std::string why_no_emulated_kernels() {
  return "machine sm100-emulated is not in this build: -DMEGAMOE_EMULATION=ON brings it";
}

std::unique_ptr<KernelSet> make_emulated_kernels(const LayerOptions&) {
  throw Error(ErrorCode::kUnsupportedMachine, why_no_emulated_kernels());
}

}  // namespace megamoe
