#pragma once

#include <cuda_runtime_api.h>

#include "machine/cuda/launch.hpp"
#include "machine/sm90/kernel_args.hpp"
#include "machine/sm90/plans.hpp"
#include "machine/sm90/shared.hpp"

namespace megamoe::sm90 {

using KernelInstance = gpu::KernelInstance<Plan, shared_tail>;

// Defined in the instance's own unit.
template <Operands kOperands, int kBlockM>
KernelInstance kernel_instance();

// Throws Error(kInternal) for a tile size that none exists for. A kernel that this build
// leaves out is null.
KernelInstance instance_of(Operands operands, int block_m);

// Brings all kernels of a kind onto this thread's current card.
void load_kernels(Operands operands);

using gpu::CoResidence;

// One call of one rank on `workers` SMs.
void launch(const KernelArgs& args,
            Operands operands,
            int workers,
            CoResidence co_residence,
            cudaStream_t stream);

}  // namespace megamoe::sm90
