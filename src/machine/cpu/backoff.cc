#include "machine/cpu/backoff.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "machine/cpu/processor.hpp"

namespace megamoe::cpu {
namespace {

constexpr int kSpins = 64;
constexpr int kYields = 16;
constexpr int kShortestSleepUs = 20;
constexpr int kLongestSleepUs = 500;

}  // namespace

void back_off(int polls) {
  if (polls < kSpins) return relax();
  if (polls < kSpins + kYields) return std::this_thread::yield();
  const int sleeps = polls - kSpins - kYields;
  const int microseconds = std::min(kLongestSleepUs, kShortestSleepUs * (1 + sleeps / 8));
  std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
}

std::int64_t monotonic_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

}  // namespace megamoe::cpu
