#pragma once

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace megamoe::test {

// Runs body(0) .. body(count - 1) on the host's cores.
template <class Body>
void parallel_for(int count, const Body& body) {
  std::atomic<int> next{0};
  std::vector<std::jthread> threads;
  const int wanted = std::min<int>(count, static_cast<int>(std::thread::hardware_concurrency()));
  for (int t = 0; t < std::max(wanted, 1); ++t)
    threads.emplace_back([&] {
      for (int i; (i = next.fetch_add(1)) < count;)
        body(i);
    });
}

}  // namespace megamoe::test
