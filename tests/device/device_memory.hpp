#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/check.hpp"

namespace megamoe::test {

inline void expect_cuda(cudaError_t error, const char* what) {
  require(error == cudaSuccess, ErrorCode::kRunFailed, what, ": ", cudaGetErrorString(error));
}

// Plain device memory, owned.
class DeviceBytes {
 public:
  DeviceBytes() = default;
  explicit DeviceBytes(std::size_t bytes) : bytes_(bytes) {
    expect_cuda(cudaMalloc(&data_, bytes), "cudaMalloc");
  }
  DeviceBytes(DeviceBytes&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  DeviceBytes& operator=(DeviceBytes&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~DeviceBytes() { cudaFree(data_); }

  template <class T = std::byte>
  T* as() const {
    return static_cast<T*>(data_);
  }
  std::size_t size() const { return bytes_; }
  void fill(int byte) { expect_cuda(cudaMemset(data_, byte, bytes_), "cudaMemset"); }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

template <class T>
DeviceBytes upload(const std::vector<T>& values) {
  DeviceBytes memory(values.size() * sizeof(T));
  expect_cuda(cudaMemcpy(memory.as(), values.data(), memory.size(), cudaMemcpyHostToDevice),
              "copying to the device");
  return memory;
}

template <class T>
std::vector<T> download(const void* from, std::size_t count) {
  std::vector<T> values(count);
  expect_cuda(cudaMemcpy(values.data(), from, count * sizeof(T), cudaMemcpyDeviceToHost),
              "copying from the device");
  return values;
}

}  // namespace megamoe::test
