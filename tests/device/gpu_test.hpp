#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <string>

namespace megamoe::test {

// Why a kernel for Hopper can't run here; empty if it can.
inline std::string why_not_here() {
  int devices = 0;
  const cudaError_t error = cudaGetDeviceCount(&devices);
  if (error != cudaSuccess)
    return std::string("there is no GPU here: ") + cudaGetErrorString(error);
  if (devices == 0) return "there is no GPU here";
  int major = 0;
  int minor = 0;
  cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0);
  cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0);
  if (major == 9 && minor == 0) return "";
  return "the GPU here is of compute capability " + std::to_string(major) + "." +
         std::to_string(minor) + "; these kernels are for 9.0";
}

inline int device_workers() {
  int count = 0;
  cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0);
  return count;
}

// A test that needs a Hopper card, and is skipped without one.
class GpuTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::string why = why_not_here();
    if (!why.empty()) GTEST_SKIP() << why;
  }
};

}  // namespace megamoe::test
