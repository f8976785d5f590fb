#include "card.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "megamoe/computer.hpp"

namespace megamoe::test {
namespace {

constexpr std::size_t kGuard = 4096;
constexpr int kFill = 0xA5;

}  // namespace

void OnCard::SetUp() {
  const Computer computer = examine_computer();
  const bool has_hopper = std::any_of(computer.cards.begin(),
                                      computer.cards.end(),
                                      [](const Card& card) { return card.capability == "9.0"; });
  for (const Ability& machine : computer.machines) {
    if (machine.name != GetParam().name || machine.works()) continue;
    const bool is_left_out = machine.why_not.find("is not in this build") != std::string::npos;
    // Where the card is and the kernels are built, a machine that can't run is a failure.
    if (has_hopper && !is_left_out) FAIL() << machine.why_not;
    GTEST_SKIP() << machine.why_not;
  }
}

std::string name_of(const testing::TestParamInfo<CardMachine>& info) {
  std::string name = std::string(info.param.name) + "_" + info.param.numerics;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

void expect_cuda(cudaError_t error, const char* what) {
  if (error != cudaSuccess)
    throw Error(ErrorCode::kRunFailed, std::string(what) + ": " + cudaGetErrorString(error));
}

CardMemory::CardMemory(std::size_t bytes) : size_(bytes) {
  expect_cuda(cudaMalloc(&data_, bytes + kGuard), "cudaMalloc");
  expect_cuda(cudaMemset(data_, kFill, bytes + kGuard), "cudaMemset");
  // Not the whole device: another rank's call may be waiting there for this one.
  expect_cuda(cudaStreamSynchronize(nullptr), "cudaMemset");
}

CardMemory::~CardMemory() {
  cudaFree(data_);
}

std::string CardMemory::bytes(std::size_t count) const {
  std::string copy(count, '\0');
  expect_cuda(cudaMemcpy(copy.data(), data_, count, cudaMemcpyDeviceToHost), "cudaMemcpy");
  return copy;
}

bool CardMemory::is_whole() const {
  const std::string all = bytes(size_ + kGuard);
  return all.find_first_not_of(static_cast<char>(kFill), size_) == std::string::npos;
}

CardStream::CardStream() {
  expect_cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "a stream");
}

CardStream::~CardStream() {
  cudaStreamDestroy(stream_);
}

void CardStream::synchronize() const {
  expect_cuda(cudaStreamSynchronize(stream_), "what is on a stream");
}

LayerOptions OnCard::card_options(const std::string& numerics) {
  LayerOptions options;
  options.machine = GetParam().name;
  options.device = 0;  // a test's own memory and streams are there
  options.numerics = numerics;
  options.timeout_ms = 10'000;
  options.poison = true;
  return options;
}

std::string y_on_card(const Trial& trial,
                      const std::vector<int>& tokens,
                      const LayerOptions& options) {
  const LaunchResult result = launch_threads(static_cast<int>(tokens.size()), [&](Group group) {
    const int first = std::accumulate(tokens.begin(), tokens.begin() + group.rank(), 0);
    const int count = tokens[static_cast<std::size_t>(group.rank())];
    return run_once(group, trial, options, first, count);
  });
  std::string y;
  for (const std::string& text : texts_of(result))
    y += text;
  return y;
}

Comparison judged(const Trial& trial, const std::string& y, const Tolerance& tolerance) {
  std::vector<Bfloat16> cells(y.size() / sizeof(Bfloat16));
  std::memcpy(cells.data(), y.data(), cells.size() * sizeof(Bfloat16));
  const int hidden = trial.problem().hidden;
  return compare(
      cells, trial.reference(static_cast<std::int64_t>(cells.size()) / hidden), hidden, tolerance);
}

std::string rows_of(const CardMemory& y, std::int64_t count, int hidden) {
  return y.bytes(static_cast<std::size_t>(count * hidden) * sizeof(Bfloat16));
}

}  // namespace megamoe::test
