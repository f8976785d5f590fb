// The device library of the emulation. It is compiled to PTX for Hopper, and the rewriter puts that
// text in front of a kernel's.
#include "emulation/device/copies.cuh"
#include "emulation/device/operations.cuh"
#include "emulation/device/tensor_memory.cuh"

extern "C" {
__device__ megamoe::emulation::Settings emulated_settings;
}
