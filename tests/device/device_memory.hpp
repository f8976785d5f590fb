#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/check.hpp"

namespace megamoe::test {

inline void expect_cuda(cudaError_t error, const char* what) {
  require(error == cudaSuccess, ErrorCode::kRunFailed, what, ": ", cudaGetErrorString(error));
}

template <class T>
std::vector<T> download(const void* from, std::size_t count) {
  std::vector<T> values(count);
  expect_cuda(cudaMemcpy(values.data(), from, count * sizeof(T), cudaMemcpyDeviceToHost),
              "copying from the device");
  return values;
}

// Plain device memory, owned, between two guards that nobody may write.
class DeviceBytes {
 public:
  DeviceBytes() = default;
  explicit DeviceBytes(std::size_t bytes) : bytes_(bytes) {
    expect_cuda(cudaMalloc(&data_, bytes + 2 * kGuard), "cudaMalloc");
    expect_cuda(cudaMemset(data_, kGuardByte, kGuard), "cudaMemset");
    expect_cuda(cudaMemset(as() + bytes_, kGuardByte, kGuard), "cudaMemset");
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
    return data_ == nullptr ? nullptr
                            : reinterpret_cast<T*>(static_cast<std::byte*>(data_) + kGuard);
  }
  std::size_t size() const { return bytes_; }
  void fill(int byte) { expect_cuda(cudaMemset(as(), byte, bytes_), "cudaMemset"); }

  // Nothing was written in front of it or behind it.
  bool is_intact() const {
    if (data_ == nullptr) return true;
    const auto holds = [](const std::vector<std::byte>& guard) {
      return std::all_of(
          guard.begin(), guard.end(), [](std::byte b) { return b == std::byte{kGuardByte}; });
    };
    return holds(download<std::byte>(data_, kGuard)) &&
           holds(download<std::byte>(as() + bytes_, kGuard));
  }

 private:
  static constexpr std::size_t kGuard = 4096;  // keeps what lies behind it aligned
  static constexpr unsigned char kGuardByte = 0xC3;

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

// A stream that waits for no other, owned.
class Stream {
 public:
  Stream() {
    expect_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream");
  }
  Stream(Stream&& other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}
  Stream& operator=(Stream&&) = delete;
  ~Stream() {
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
  }
  operator cudaStream_t() const { return stream_; }
  void wait() const { expect_cuda(cudaStreamSynchronize(stream_), "waiting for a stream"); }

 private:
  cudaStream_t stream_ = nullptr;
};

}  // namespace megamoe::test
