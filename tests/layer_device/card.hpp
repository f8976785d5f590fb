#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "trial.hpp"

namespace megamoe::test {

// A GPU machine that tests run on, and its numerics.
struct CardMachine {
  const char* name;
  const char* numerics;

  bool has_fast() const { return std::string(name) == "sm90"; }
  Tolerance tolerance() const {
    return std::string(numerics) == "fast" ? kRegroupedTolerance : kExactTolerance;
  }
};
inline void PrintTo(const CardMachine& machine, std::ostream* out) {
  *out << machine.name << "/" << machine.numerics;
}
inline constexpr CardMachine kHopper{"sm90", "fast"};
inline constexpr CardMachine kExactHopper{"sm90", "exact"};
// Blackwell's kernels on the same card.
inline constexpr CardMachine kEmulatedBlackwell{"sm100-emulated", "exact"};
// For INSTANTIATE_TEST_SUITE_P.
std::string name_of(const testing::TestParamInfo<CardMachine>& info);

// Skips its tests, with the machine's own reason, where there is no card for them or the build
// leaves their machine out; fails them where it can't run for another one.
class OnCard : public testing::TestWithParam<CardMachine> {
 protected:
  void SetUp() override;
  static LayerOptions card_options(const std::string& numerics = GetParam().numerics);
};

void expect_cuda(cudaError_t error, const char* what);

// Memory of the current card, filled with 0xA5, that knows when somebody wrote past its end.
class CardMemory {
 public:
  explicit CardMemory(std::size_t bytes);
  ~CardMemory();
  CardMemory(const CardMemory&) = delete;
  CardMemory& operator=(const CardMemory&) = delete;

  template <class T = std::byte>
  T* as() const {
    return static_cast<T*>(data_);
  }
  std::string bytes(std::size_t count) const;
  bool is_whole() const;  // nothing was written behind it

 private:
  std::size_t size_;
  void* data_ = nullptr;
};

// A stream that no default stream waits for.
class CardStream {
 public:
  CardStream();
  ~CardStream();
  CardStream(const CardStream&) = delete;
  CardStream& operator=(const CardStream&) = delete;

  cudaStream_t get() const { return stream_; }
  void synchronize() const;

 private:
  cudaStream_t stream_ = nullptr;
};

// What `tokens[r]` tokens of each rank come to, one after the other, as bytes.
std::string y_on_card(const Trial& trial,
                      const std::vector<int>& tokens,
                      const LayerOptions& options);

// The comparison of bytes of y with the reference.
Comparison judged(const Trial& trial, const std::string& y, const Tolerance& tolerance);

// The bytes of `y` of `count` tokens in host memory after what is on the stream.
std::string rows_of(const CardMemory& y, std::int64_t count, int hidden);

}  // namespace megamoe::test
