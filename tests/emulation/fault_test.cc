#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "emulated_layer.hpp"
#include "gpu_test.hpp"

// Calls of Blackwell's kernel that don't come to their end.
namespace megamoe::test {
namespace {

using EmulatedFaults = GpuTest;

// A rank that never comes is named by the one that waits for it; both CTAs of every pair leave, and
// after a reset both ranks work.
TEST_F(EmulatedFaults, MissingRankIsNamed) {
  const Problem problem{
      .ranks = 2, .experts = 8, .topk = 2, .hidden = 256, .intermediate = 128, .capacity = 16};
  const RandomWeights weights = random_weights(problem, 3, 5);
  EmulatedLayer layer(problem, weights, {.timeout_ms = 100});
  for (int r = 0; r < 2; ++r)
    layer.set_input(r, random_input(problem, 9, 3));
  layer.prepare();
  layer.launch(0);
  layer.finish();
  const FaultRecord fault = layer.fault(0);
  EXPECT_EQ(fault.wait.what, WaitFor::kRank);
  EXPECT_EQ(fault.wait.awaited_rank, 1);
  EXPECT_EQ(fault.abort.reason, AbortReason::kExpired);
  EXPECT_EQ(Abort::of(layer.read(1, layer.workspace().abort, 1)[0].value).rank, 0);
  layer.reset();
  layer.args(0).options.timeout_ms = 15'000;
  layer.args(1).options.timeout_ms = 15'000;
  EXPECT_NO_THROW(layer.forward());
}

// A call that is stopped in the middle, wherever it is just then, ends: every role of both CTAs of
// a pair leaves, also when only one of them has noticed.
TEST_F(EmulatedFaults, StoppedCallsEnd) {
  const Problem problem{
      .experts = 8, .topk = 4, .hidden = 512, .intermediate = 256, .capacity = 200};
  const RandomWeights weights = random_weights(problem, 3, 5);
  for (const int block_m : {16, 192}) {
    EmulatedLayer layer(problem, weights, {.block_m = block_m, .workers = 16});
    layer.set_input(0, random_input(problem, 200, 3));
    layer.forward();
    const Stream other;
    const std::uint32_t stop = Abort{AbortReason::kStopped, 0}.word();
    int abandoned = 0;
    for (int delay = 0; delay < 8; ++delay) {
      SCOPED_TRACE(delay);
      layer.prepare();
      layer.launch(0);
      std::this_thread::sleep_for(std::chrono::microseconds(300 * delay * delay));
      expect_cuda(cudaMemcpyAsync(layer.symmetric(0) + layer.workspace().abort.offset,
                                  &stop,
                                  sizeof stop,
                                  cudaMemcpyHostToDevice,
                                  other),
                  "stopping");
      layer.finish();
      abandoned += layer.fault_claims(0) != 0 ? 1 : 0;
      layer.reset();
    }
    EXPECT_GT(abandoned, 0);
    EXPECT_NO_THROW(layer.forward());
  }
}

}  // namespace
}  // namespace megamoe::test
