#include "runtime/gpu/packing_threads.hpp"

#include <algorithm>
#include <thread>
#include <vector>

namespace megamoe {
namespace {

/// Ranks pack at the same time, and others work here too.
int packing_threads() {
  constexpr int kMost = 16;
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()) / 2, 1, kMost);
}

}  // namespace

void pack_in_parts(const gpu::PackedRange& all,
                   const std::function<void(const gpu::PackedRange&)>& pack) {
  const int threads = std::min(packing_threads(), all.count);
  std::vector<std::jthread> packers;
  for (int i = 0; i < threads; ++i) {
    const int first = all.first + all.count * i / threads;
    const int end = all.first + all.count * (i + 1) / threads;
    packers.emplace_back([&pack, first, end] { pack({.first = first, .count = end - first}); });
  }
}

}  // namespace megamoe
