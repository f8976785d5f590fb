#pragma once

#include "machine/cuda/launch.hpp"
#include "machine/sm100/kernel_args.hpp"
#include "machine/sm100/plans.hpp"

namespace megamoe::sm100 {

using KernelInstance = gpu::KernelInstance<Plan, shared_tail>;

// Defined in the instance's own unit.
template <int kBlockM>
KernelInstance kernel_instance();

// Throws Error(kInternal) for a tile size that none exists for. A kernel that this build
// leaves out is null.
KernelInstance instance_of(int block_m);

// One call of one rank on `workers` SMs, an even number.
void launch(const KernelInstance& instance,
            const KernelArgs& args,
            int workers,
            gpu::CoResidence co_residence,
            cudaStream_t stream);

}  // namespace megamoe::sm100
