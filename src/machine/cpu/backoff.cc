#include "machine/cpu/backoff.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

namespace megamoe::cpu {
namespace {

constexpr int kSpins = 64;
constexpr int kYields = 16;
constexpr int kShortestSleepUs = 20;
constexpr int kLongestSleepUs = 500;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

void back_off(int polls) {
  if (polls < kSpins) return relax();
  if (polls < kSpins + kYields) return std::this_thread::yield();
  const int sleeps = polls - kSpins - kYields;
  const int microseconds = std::min(kLongestSleepUs, kShortestSleepUs * (1 + sleeps / 8));
  std::this_thread::sleep_for(std::chrono::microseconds(microseconds));
}

std::uint64_t monotonic_ms() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(now).count());
}

}  // namespace megamoe::cpu
