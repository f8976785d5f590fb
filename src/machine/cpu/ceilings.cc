#include "machine/cpu/ceilings.hpp"

#include <algorithm>
#include <barrier>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "machine/cpu/backoff.hpp"
#include "machine/cpu/tile/tile_functions.hpp"

namespace megamoe::cpu {
namespace {

constexpr int kRepeats = 5;  // the best one counts: others may have had the computer too

/// The best rate of `amount_of_thread` times `threads` over a few joint runs of `work`.
double best_rate(int threads,
                 double amount_of_thread,
                 const std::function<void(int thread)>& work) {
  double best = 0;
  std::vector<std::int64_t> began(static_cast<std::size_t>(threads));
  std::vector<std::int64_t> ended(began);
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    std::barrier together(threads);
    {
      std::vector<std::jthread> team;
      for (int thread = 0; thread < threads; ++thread) {
        team.emplace_back([&, thread] {
          together.arrive_and_wait();
          began[static_cast<std::size_t>(thread)] = monotonic_ns();
          work(thread);
          ended[static_cast<std::size_t>(thread)] = monotonic_ns();
        });
      }
    }
    const std::int64_t span = *std::max_element(ended.begin(), ended.end()) -
                              *std::min_element(began.begin(), began.end());
    best = std::max(best, amount_of_thread * threads / (static_cast<double>(span) * 1e-9));
  }
  return best;
}

}  // namespace

double measure_read_rate(int threads) {
  constexpr std::size_t kWords = std::size_t{256} << 17;  // 256 MiB a thread
  std::vector<std::vector<std::uint64_t>> buffers(static_cast<std::size_t>(threads));
  std::vector<std::uint64_t> sums(buffers.size());
  for (auto& buffer : buffers)
    buffer.assign(kWords, 1);
  return best_rate(threads, kWords * sizeof(std::uint64_t), [&](int thread) {
    const auto& buffer = buffers[static_cast<std::size_t>(thread)];
    std::uint64_t parts[8] = {};  // enough chains to keep the loads coming
    for (std::size_t i = 0; i < kWords; i += 8)
      for (std::size_t j = 0; j < 8; ++j)
        parts[j] += buffer[i + j];
    for (const std::uint64_t part : parts)
      sums[static_cast<std::size_t>(thread)] += part;
  });
}

double measure_flop_rate(int threads, InstructionSet set) {
  constexpr int kRounds = 4'000'000;
  const TileFunctions& functions = *functions_of(set);
  return best_rate(threads, kRounds * functions.flops_of_round, [&](int) {
    functions.multiply_registers(kRounds);
  });
}

}  // namespace megamoe::cpu
