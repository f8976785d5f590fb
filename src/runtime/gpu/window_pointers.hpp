#pragma once

#include <cuda_runtime_api.h>
#include <nccl.h>

namespace megamoe {

/// Puts the address of every rank's part of a window, as this card reaches it, into `to`, which is
/// memory of the card. For NCCL of before 2.29, which tells addresses to kernels alone.
cudaError_t write_window_pointers(ncclWindow_t window, int ranks, void** to, cudaStream_t stream);

}  // namespace megamoe
