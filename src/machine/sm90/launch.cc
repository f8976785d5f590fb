#include "machine/sm90/launch.hpp"

#include "machine/cuda/block_sizes.hpp"

namespace megamoe::sm90 {
KernelInstance instance_of(Operands operands, int block_m) {
  return gpu::of_block_size<kBlockSizes>("sm90", block_m, [&](auto size) {
    return operands == Operands::kFloat8 ? kernel_instance<Operands::kFloat8, size>()
                                         : kernel_instance<Operands::kBfloat16, size>();
  });
}

void load_kernels(Operands operands) {
  for (const int block_m : kBlockSizes)
    if (const void* kernel = instance_of(operands, block_m).kernel) gpu::load_kernel(kernel);
}

void launch(const KernelArgs& args,
            Operands operands,
            int workers,
            CoResidence co_residence,
            cudaStream_t stream) {
  const KernelInstance instance = instance_of(operands, args.call.ring.block_m);
  gpu::launch(instance.kernel,
              {.workers = workers,
               .threads = instance.plan.threads(),
               .shared_bytes = instance.shared_bytes(args.call.problem)},
              co_residence,
              stream,
              &args);
}

}  // namespace megamoe::sm90
