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

/// Nanoseconds from the first start to the last end of `threads` threads that begin `work`
/// together.
std::int64_t joint_span(int threads, const std::function<void(int thread)>& work) {
  std::vector<std::int64_t> began(static_cast<std::size_t>(threads));
  std::vector<std::int64_t> ended(began);
  std::barrier together(threads);
  const auto run = [&](int thread) {
    together.arrive_and_wait();
    began[static_cast<std::size_t>(thread)] = monotonic_ns();
    work(thread);
    ended[static_cast<std::size_t>(thread)] = monotonic_ns();
  };
  {
    std::vector<std::jthread> team;
    team.reserve(began.size());
    for (int thread = 0; thread < threads; ++thread) {
      try {
        team.emplace_back(run, thread);
      } catch (...) {
        static_cast<void>(together.arrive(threads - thread));  // or the others wait for ever
        throw;
      }
    }
  }
  return *std::max_element(ended.begin(), ended.end()) -
         *std::min_element(began.begin(), began.end());
}

/// The best rate of `amount_of_thread` times `threads` over a few joint runs of `work`.
double best_rate(int threads,
                 double amount_of_thread,
                 const std::function<void(int thread)>& work) {
  double best = 0;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    const double seconds = static_cast<double>(joint_span(threads, work)) * 1e-9;
    best = std::max(best, amount_of_thread * threads / seconds);
  }
  return best;
}

}  // namespace

double measure_read_rate(int threads) {
  // 256 MiB a thread, less where there are many: together they take 4 GiB or little more.
  constexpr std::size_t kMost = std::size_t{256} << 20;
  constexpr std::size_t kLeast = std::size_t{16} << 20;
  constexpr std::size_t kTogether = std::size_t{4} << 30;
  const std::size_t bytes =
      std::clamp(kTogether / static_cast<std::size_t>(threads), kLeast, kMost);
  const std::size_t num_words = bytes / 64 * 8;
  std::vector<std::vector<std::uint64_t>> buffers(static_cast<std::size_t>(threads));
  std::vector<std::uint64_t> sums(buffers.size());
  for (auto& buffer : buffers)
    buffer.assign(num_words, 1);
  return best_rate(threads, static_cast<double>(num_words) * 8, [&](int thread) {
    const auto& buffer = buffers[static_cast<std::size_t>(thread)];
    std::uint64_t parts[8] = {};  // enough chains to keep the loads coming
    for (std::size_t i = 0; i < num_words; i += 8)
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
