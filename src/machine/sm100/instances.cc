#include "machine/sm100/launch.hpp"

namespace megamoe::sm100 {

KernelInstance instance_of(int block_m) {
  switch (block_m) {
    case 16: return kernel_instance<16>();
    case 32: return kernel_instance<32>();
    case 64: return kernel_instance<64>();
    case 96: return kernel_instance<96>();
    case 128: return kernel_instance<128>();
    case 192: return kernel_instance<192>();
    default: throw no_such_kernel(block_m);
  }
}

}  // namespace megamoe::sm100
