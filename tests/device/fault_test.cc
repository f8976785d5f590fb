#include <gtest/gtest.h>

#include <chrono>
#include <cstring>

#include "device_layer.hpp"

namespace megamoe::test {
namespace {

class Faults : public testing::Test {
 protected:
  void SetUp() override {
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0)
      GTEST_SKIP() << "there is no GPU here";
  }

  static void reset(const DeviceLayer& layer) {
    for (int r = 0; r < layer.problem().ranks; ++r)
      expect_cuda(cudaMemset(layer.symmetric(r), 0, layer.workspace().zeroed_bytes), "reset");
  }
};

// A rank that never comes is named by the one that waits for it; the kernel leaves, and after a
// reset both ranks work.
TEST_F(Faults, MissingRankIsNamed) {
  const Problem problem{
      .ranks = 2, .experts = 8, .topk = 2, .hidden = 256, .intermediate = 128, .capacity = 16};
  const RandomWeights weights = random_weights(problem, 3, 5);
  DeviceLayer layer(problem, weights, {.block_m = 8, .timeout_ms = 200});
  for (int r = 0; r < 2; ++r)
    layer.set_input(r, random_input(problem, 9, 3));
  sm90::launch(
      layer.args(0), sm90::Operands::kFloat8, 20, sm90::CoResidence::kByCaller, layer.stream(0));
  expect_cuda(cudaDeviceSynchronize(), "the abandoned call");
  const FaultRecord fault = layer.read(0, layer.workspace().fault, 1)[0];
  EXPECT_EQ(fault.wait.what, WaitFor::kRank);
  EXPECT_EQ(fault.wait.awaited_rank, 1);
  EXPECT_EQ(fault.rank, 0);
  EXPECT_EQ(fault.abort.reason, AbortReason::kExpired);
  EXPECT_EQ(Abort::of(layer.read(1, layer.workspace().abort, 1)[0].value).rank, 0);
  reset(layer);
  EXPECT_NO_THROW(layer.forward(20));
}

// A call that is stopped in the middle, wherever it is just then, ends: every role leaves.
TEST_F(Faults, StoppedCallsEnd) {
  const Problem problem{
      .experts = 16, .topk = 4, .hidden = 2048, .intermediate = 1024, .capacity = 4000};
  const RandomWeights weights = random_weights(problem, 3, 5);
  for (const int block_m : {16, 64, 192}) {
    DeviceLayer layer(problem, weights, {.block_m = block_m});
    layer.set_input(0, random_input(problem, 4000, 3));
    layer.forward(132);
    cudaStream_t other = nullptr;
    expect_cuda(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), "a stream");
    const std::uint32_t stop = Abort{AbortReason::kStopped, 0}.word();
    int abandoned = 0;
    for (int delay = 0; delay < 1000; delay += 50) {
      SCOPED_TRACE(delay);
      sm90::launch(layer.args(0),
                   sm90::Operands::kFloat8,
                   132,
                   sm90::CoResidence::kByDevice,
                   layer.stream(0));
      const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(delay);
      while (std::chrono::steady_clock::now() < until) {
      }
      expect_cuda(cudaMemcpyAsync(layer.symmetric(0) + layer.workspace().abort.offset,
                                  &stop,
                                  sizeof stop,
                                  cudaMemcpyHostToDevice,
                                  other),
                  "stopping");
      expect_cuda(cudaDeviceSynchronize(), "the stopped call");
      abandoned += layer.read(0, layer.workspace().fault_claims, 1)[0].value != 0;
      reset(layer);
    }
    EXPECT_GT(abandoned, 0);
    EXPECT_NO_THROW(layer.forward(132));
    cudaStreamDestroy(other);
  }
}

}  // namespace
}  // namespace megamoe::test
