// Do launches that each take a part of the card run side by side, and what happens when they ask
// for more than it has? Prints one line a launch; asserts nothing. docs/decisions/0105 holds the
// answers.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "device_memory.hpp"
#include "gpu_test.hpp"
#include "spin.hpp"

namespace megamoe::test {
namespace {

constexpr auto kCooperative = sm90::CoResidence::kByDevice;
constexpr auto kPlain = sm90::CoResidence::kByCaller;
constexpr std::uint64_t kSpinNanoseconds = 2'000'000;

struct Part {
  int workers;
  sm90::CoResidence co_residence;
};

double microseconds(std::uint64_t from, std::uint64_t to) {
  return static_cast<double>(static_cast<std::int64_t>(to - from)) * 1e-3;
}

// One launch on its own stream, all of them issued at once.
struct Launch {
  Part part;
  Stream stream;
  DeviceBytes times;
  cudaError_t error = cudaSuccess;
};

void print(const Launch& launch, std::uint64_t origin, std::uint64_t first_end) {
  std::printf("    %3d %-11s  ",
              launch.part.workers,
              launch.part.co_residence == kCooperative ? "cooperative" : "plain");
  if (launch.error != cudaSuccess) {
    std::printf("refused: %s\n", cudaGetErrorString(launch.error));
    return;
  }
  const auto count = static_cast<std::size_t>(launch.part.workers);
  const auto times = download<SpinTimes>(launch.times.as(), count);
  const auto by_start = [](const SpinTimes& a, const SpinTimes& b) { return a.start < b.start; };
  const auto [first, last] = std::minmax_element(times.begin(), times.end(), by_start);
  const auto beside = std::count_if(
      times.begin(), times.end(), [&](const SpinTimes& t) { return t.start < first_end; });
  std::printf("workers begin at %8.1f to %8.1f us, %3td of them before the first launch ended\n",
              microseconds(origin, first->start),
              microseconds(origin, last->start),
              beside);
}

void measure(const char* what, const std::vector<Part>& parts) {
  std::printf("  %s\n", what);
  std::vector<Launch> launches;
  for (const Part& part : parts) {
    launches.push_back(
        {part, {}, DeviceBytes(static_cast<std::size_t>(part.workers) * sizeof(SpinTimes))});
    launches.back().times.fill(0);
  }
  expect_cuda(cudaDeviceSynchronize(), "preparing");
  for (Launch& launch : launches)
    launch.error = launch_spin({.workers = launch.part.workers,
                                .co_residence = launch.part.co_residence,
                                .nanoseconds = kSpinNanoseconds,
                                .times = launch.times.as<SpinTimes>()},
                               launch.stream);
  expect_cuda(cudaDeviceSynchronize(), "spinning");
  std::uint64_t origin = 0;
  std::uint64_t first_end = 0;
  for (const Launch& launch : launches) {
    if (launch.error != cudaSuccess || origin != 0) continue;
    const auto times =
        download<SpinTimes>(launch.times.as(), static_cast<std::size_t>(launch.part.workers));
    origin = first_end = times[0].start;
    for (const SpinTimes& t : times) {
      origin = std::min(origin, t.start);
      first_end = std::max(first_end, t.end);
    }
  }
  for (const Launch& launch : launches)
    print(launch, origin, first_end);
}

void probe() {
  prepare_spin();
  const int all = device_workers();
  std::printf("co-residence on %d SMs; every worker spins for %.1f ms\n",
              all,
              static_cast<double>(kSpinNanoseconds) * 1e-6);
  measure("warm-up", {{all, kPlain}});
  measure("two cooperative halves", {{all / 2, kCooperative}, {all / 2, kCooperative}});
  measure("two plain halves", {{all / 2, kPlain}, {all / 2, kPlain}});
  measure("a cooperative half and a plain half", {{all / 2, kCooperative}, {all / 2, kPlain}});
  measure("a plain half and a cooperative half", {{all / 2, kPlain}, {all / 2, kCooperative}});
  measure("eight cooperative eighths", std::vector<Part>(8, {all / 8, kCooperative}));
  measure("cooperative, together more than the card", {{100, kCooperative}, {100, kCooperative}});
  measure("plain, together more than the card", {{100, kPlain}, {100, kPlain}});
  measure("cooperative beside a plain part, too many", {{32, kPlain}, {all, kCooperative}});
  measure("cooperative, more than the card by itself", {{all + 1, kCooperative}});
  measure("two halves behind a cooperative whole",
          {{all, kCooperative}, {all / 2, kCooperative}, {all / 2, kCooperative}});
}

}  // namespace
}  // namespace megamoe::test

int main() {
  const std::string why = megamoe::test::why_not_here();
  if (!why.empty()) {
    std::printf("skipped: %s\n", why.c_str());
    return 0;
  }
  megamoe::test::probe();
}
