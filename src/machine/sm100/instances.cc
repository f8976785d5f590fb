#include "machine/cuda/block_sizes.hpp"
#include "machine/sm100/launch.hpp"

namespace megamoe::sm100 {

KernelInstance instance_of(int block_m) {
  return gpu::of_block_size<kBlockSizes>(
      "sm100", block_m, [](auto size) { return kernel_instance<size>(); });
}

}  // namespace megamoe::sm100
