#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>

#include "device_layer.hpp"
#include "gpu_test.hpp"
#include "whole_reference.hpp"

namespace megamoe::test {
namespace {

class Faults : public GpuTest {
 protected:
  static constexpr int kWorkers = 20;

  static Problem problem(int ranks) {
    return {.ranks = ranks,
            .experts = 8,
            .topk = 2,
            .hidden = 256,
            .intermediate = 128,
            .capacity = 16};
  }

  static DeviceLayer layer_of(int ranks, std::uint64_t timeout_ms) {
    DeviceLayer layer(problem(ranks),
                      random_weights(problem(ranks), 3, 5),
                      {.block_m = 8, .timeout_ms = timeout_ms});
    for (int r = 0; r < ranks; ++r)
      layer.set_input(r, random_input(problem(ranks), 9, 3 + static_cast<unsigned>(r)));
    return layer;
  }

  // As layer_of() left it, the layer still gives what another one gives.
  static void expect_it_works(DeviceLayer& layer) {
    DeviceLayer other = layer_of(layer.problem().ranks, 4000);
    other.forward(kWorkers);
    layer.poison();
    layer.forward(kWorkers);
    for (int r = 0; r < layer.problem().ranks; ++r)
      EXPECT_TRUE(same_bits(layer.output(r), other.output(r))) << "rank " << r;
    EXPECT_TRUE(layer.is_intact());
  }

  static bool is_untouched(const DeviceLayer& layer, int rank) {
    const auto bytes = download<std::byte>(
        layer.args(rank).call.output,
        static_cast<std::size_t>(layer.problem().capacity * layer.problem().hidden) * 2);
    return std::all_of(
        bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0x5A}; });
  }
};

// A rank that comes late, but within the bound, is waited for.
TEST_F(Faults, LateRankIsWaitedFor) {
  DeviceLayer layer = layer_of(4, 4000);
  layer.prepare();
  for (const int rank : {2, 0, 3, 1}) {
    layer.launch(rank, kWorkers);
    std::this_thread::sleep_for(std::chrono::milliseconds(150));
  }
  expect_cuda(cudaDeviceSynchronize(), "the call");
  EXPECT_NO_THROW(layer.expect_no_fault());
  expect_it_works(layer);
}

// A rank that never comes: every other one leaves and says where it stood; somebody names the
// missing one. After a reset all of them work.
TEST_F(Faults, MissingRankIsNamed) {
  constexpr int kRanks = 4;
  constexpr int kMissing = 2;
  DeviceLayer layer = layer_of(kRanks, 200);
  layer.prepare();
  for (int r = 0; r < kRanks; ++r)
    if (r != kMissing) layer.launch(r, kWorkers);
  expect_cuda(cudaDeviceSynchronize(), "the abandoned call");
  bool is_named = false;
  for (int r = 0; r < kRanks; ++r) {
    if (r == kMissing) continue;
    SCOPED_TRACE(testing::Message() << "rank " << r);
    ASSERT_GT(layer.fault_claims(r), 0U);
    const FaultRecord fault = layer.fault(r);
    EXPECT_EQ(fault.rank, r);
    EXPECT_GE(fault.worker, 0);
    EXPECT_LT(fault.worker, kWorkers);
    EXPECT_EQ(fault.abort.reason, AbortReason::kExpired);
    EXPECT_NE(fault.abort.rank, kMissing);
    EXPECT_TRUE(fault.wait.what == WaitFor::kRank || fault.wait.what == WaitFor::kGate);
    EXPECT_EQ(fault.wait.subject, 1) << "the barrier";
    EXPECT_LT(fault.observation.seen, fault.observation.expected);
    is_named = is_named || (fault.wait.what == WaitFor::kRank &&
                            fault.wait.awaited_rank == kMissing && fault.abort.rank == r);
    EXPECT_TRUE(is_untouched(layer, r));
  }
  EXPECT_TRUE(is_named);
  // The missing one is told, should it come after all.
  EXPECT_EQ(Abort::of(layer.read(kMissing, layer.workspace().abort, 1)[0].value).reason,
            AbortReason::kExpired);
  EXPECT_TRUE(layer.is_intact());
  layer.reset();
  expect_it_works(layer);
}

// Ids past the last expert, however far, are counted and treated as masked.
TEST_F(Faults, BadIdsAreCountedAndMasked) {
  DeviceLayer layer = layer_of(2, 4000);
  RandomInput input = random_input(problem(2), 16, 40);
  RandomInput masked = input;
  constexpr std::int64_t kBad[] = {8,
                                   9,
                                   1023,
                                   std::int64_t{1} << 31,
                                   (std::int64_t{1} << 32) + 3,
                                   std::numeric_limits<std::int64_t>::max()};
  std::vector<std::uint64_t> bad_pairs;
  for (std::size_t i = 0; i < std::size(kBad); ++i) {
    bad_pairs.push_back(3 + 5 * i);
    input.ids[bad_pairs.back()] = kBad[i];
    masked.ids[bad_pairs.back()] = -1;
  }
  layer.set_input(0, masked);
  layer.forward(kWorkers);
  const std::vector<Bfloat16> wanted[] = {layer.output(0), layer.output(1)};
  EXPECT_EQ(layer.read(0, layer.workspace().bad_ids, 1)[0].value, 0U) << "masked is not bad";
  layer.set_input(0, input);
  layer.poison();
  layer.forward(kWorkers);
  EXPECT_TRUE(same_bits(layer.output(0), wanted[0]));
  EXPECT_TRUE(same_bits(layer.output(1), wanted[1]));
  EXPECT_EQ(layer.read(0, layer.workspace().bad_ids, 1)[0].value, std::size(kBad));
  EXPECT_EQ(layer.read(1, layer.workspace().bad_ids, 1)[0].value, 0U);
  const std::uint64_t first = layer.read(0, layer.workspace().first_bad_pair, 1)[0];
  EXPECT_NE(std::find(bad_pairs.begin(), bad_pairs.end(), first), bad_pairs.end()) << first;
  EXPECT_TRUE(layer.is_intact());
}

// A count over the capacity: all ranks learn who brought it, nothing is written, and the next call
// may come at once.
TEST_F(Faults, TooManyTokensAreRefusedByAll) {
  DeviceLayer layer = layer_of(4, 4000);
  for (const std::int32_t count : {17, 1 << 30}) {
    expect_cuda(cudaMemcpy(layer.num_tokens(2), &count, sizeof count, cudaMemcpyHostToDevice),
                "a count");
    layer.poison();
    layer.forward(kWorkers);
    for (int r = 0; r < 4; ++r) {
      SCOPED_TRACE(testing::Message() << "rank " << r);
      const Refusal verdict = layer.read(r, layer.workspace().verdict, 1)[0];
      EXPECT_EQ(verdict.kind, RefusalKind::kTooManyTokens);
      EXPECT_EQ(verdict.rank, 2);
      EXPECT_EQ(verdict.token, count);
      EXPECT_TRUE(is_untouched(layer, r));
      EXPECT_TRUE(layer.counters_are_zero(r));
    }
  }
  layer.set_input(2, random_input(problem(4), 9, 5));
  expect_it_works(layer);
  EXPECT_EQ(layer.read(0, layer.workspace().verdict, 1)[0].kind, RefusalKind::kNone);
}

// A call that is stopped in the middle, wherever it is just then, ends: every role leaves.
TEST_F(Faults, StoppedCallsEnd) {
  const Problem problem{
      .experts = 16, .topk = 4, .hidden = 2048, .intermediate = 1024, .capacity = 4000};
  const RandomWeights weights = random_weights(problem, 3, 5);
  for (const int block_m : {16, 64, 160}) {
    DeviceLayer layer(problem, weights, {.block_m = block_m});
    layer.set_input(0, random_input(problem, 4000, 3));
    layer.forward(132);
    const Stream other;
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
      abandoned += layer.fault_claims(0) != 0;
      layer.reset();
    }
    EXPECT_GT(abandoned, 0);
    EXPECT_NO_THROW(layer.forward(132));
  }
}

}  // namespace
}  // namespace megamoe::test
