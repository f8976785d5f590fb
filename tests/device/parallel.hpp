#pragma once

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace megamoe::test {

// Runs body(0) .. body(count - 1) on the host's cores; throws what the first of them threw.
template <class Body>
void parallel_for(int count, const Body& body) {
  std::atomic<int> next{0};
  std::exception_ptr thrown;
  std::mutex mutex;
  const auto run = [&] {
    try {
      for (int i; (i = next.fetch_add(1)) < count;)
        body(i);
    } catch (...) {
      next.store(count);
      const std::lock_guard lock(mutex);
      if (!thrown) thrown = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> threads;
    const int wanted = std::min<int>(count, static_cast<int>(std::thread::hardware_concurrency()));
    for (int t = 0; t < std::max(wanted, 1); ++t)
      threads.emplace_back(run);
  }
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace megamoe::test
