#include "machine/sm90/launch.hpp"

#include "base/check.hpp"

namespace megamoe::sm90 {
namespace {

template <Operands kOperands>
KernelInstance instance_of_size(int block_m) {
  switch (block_m) {
    case 8: return kernel_instance<kOperands, 8>();
    case 16: return kernel_instance<kOperands, 16>();
    case 32: return kernel_instance<kOperands, 32>();
    case 64: return kernel_instance<kOperands, 64>();
    case 96: return kernel_instance<kOperands, 96>();
    case 128: return kernel_instance<kOperands, 128>();
    case 160: return kernel_instance<kOperands, 160>();
    default:
      throw Error(
          ErrorCode::kInvalidArgument,
          sentence("block_m is ", block_m, "; sm90 kernels exist for 8, 16, 32, 64, 96, 128, 160"));
  }
}

}  // namespace

KernelInstance instance_of(Operands operands, int block_m) {
  return operands == Operands::kFloat8 ? instance_of_size<Operands::kFloat8>(block_m)
                                       : instance_of_size<Operands::kBfloat16>(block_m);
}

void load_kernels(Operands operands) {
  for (const int block_m : kBlockSizes)
    gpu::load_kernel(instance_of(operands, block_m).kernel);
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
