#pragma once

#include <cuda_runtime_api.h>

#include "base/check.hpp"

namespace megamoe {

/// Throws Error(kRunFailed) with what was tried and CUDA's own words.
inline void require_cuda(cudaError_t error, const char* what) {
  require(
      error == cudaSuccess, ErrorCode::kRunFailed, what, " failed: ", cudaGetErrorString(error));
}

/// Makes a card this thread's current one, and gives the caller's back in the end.
class CardScope {
 public:
  explicit CardScope(int card) {
    require_cuda(cudaGetDevice(&before_), "cudaGetDevice");
    if (before_ != card) require_cuda(cudaSetDevice(card), "cudaSetDevice");
  }
  ~CardScope() { cudaSetDevice(before_); }
  CardScope(const CardScope&) = delete;
  CardScope& operator=(const CardScope&) = delete;

 private:
  int before_ = 0;
};

}  // namespace megamoe
