#include "runtime/gpu/kernel_set.hpp"

#include "runtime/gpu/cuda_call.hpp"
#include "runtime/gpu/emulated_kernels.hpp"
#include "runtime/gpu/sm100_kernels.hpp"
#include "runtime/gpu/sm90_kernels.hpp"
#include "runtime/gpu/sm90_limits.hpp"

namespace megamoe {

void KernelSet::require_good(cudaError_t result, const char* what) const {
  require_cuda(result, what);
}

std::string why_no_kernels(const GpuKind& kind) {
  return kind.is_emulated ? why_no_emulated_kernels() : std::string();
}

std::unique_ptr<KernelSet> make_kernel_set(const GpuKind& kind, const LayerOptions& options) {
  if (kind.is_emulated) return make_emulated_kernels(options);
  if (kind.name == "sm100") return std::make_unique<Sm100Kernels>();
  return std::make_unique<Sm90Kernels>(sm90_operands(options));
}

}  // namespace megamoe
