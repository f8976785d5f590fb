#include "machine/sm100/launch.hpp"

#include "base/check.hpp"

namespace megamoe::sm100 {

void launch(const KernelInstance& instance,
            const KernelArgs& args,
            int workers,
            gpu::CoResidence co_residence,
            cudaStream_t stream) {
  require(workers >= kPairCtas && workers % kPairCtas == 0,
          ErrorCode::kInvalidArgument,
          "num_sms is ",
          workers,
          "; sm100 kernels run on pairs of SMs: an even number, 2 at least");
  gpu::launch(instance.kernel,
              {.workers = workers,
               .threads = instance.plan.threads(),
               .shared_bytes = instance.shared_bytes(args.call.problem),
               .cluster = kPairCtas},
              co_residence,
              stream,
              &args);
}

}  // namespace megamoe::sm100
