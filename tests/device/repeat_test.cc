// The same call again and again: the same bits, whatever the workers, the caches and what runs
// beside it or before it.
#include <cstring>

#include "device_layer.hpp"
#include "gpu_test.hpp"
#include "spin.hpp"
#include "whole_reference.hpp"

namespace megamoe::test {
namespace {

using Outputs = std::vector<std::vector<Bfloat16>>;

Outputs outputs_of(const DeviceLayer& layer) {
  Outputs all;
  for (int r = 0; r < layer.problem().ranks; ++r)
    all.push_back(layer.output(r));
  return all;
}

std::vector<RandomInput> set_random_inputs(DeviceLayer& layer, std::uint64_t seed) {
  std::vector<RandomInput> inputs;
  for (int r = 0; r < layer.problem().ranks; ++r) {
    inputs.push_back(random_input(layer.problem(),
                                  std::max(0, layer.problem().capacity - 5 * r),
                                  seed + static_cast<unsigned>(r)));
    layer.set_input(r, inputs.back());
  }
  return inputs;
}

// Other lines than the layer's fill the L2 cache.
void flush_cache(DeviceBytes& scratch, int value) {
  scratch.fill(value);
  expect_cuda(cudaDeviceSynchronize(), "flushing the cache");
}

class Repeat : public GpuTest, public testing::WithParamInterface<sm90::Operands> {};

constexpr sm90::CoResidence kBothLaunches[] = {sm90::CoResidence::kByDevice,
                                               sm90::CoResidence::kByCaller};

TEST_P(Repeat, TwentyTimesWithAnyWorkers) {
  const Problem problem{
      .experts = 16, .topk = 4, .hidden = 1024, .intermediate = 544, .capacity = 200};
  const RandomWeights weights = random_weights(problem, 5, 5);
  DeviceBytes scratch(std::size_t{128} << 20);
  for (const int block_m : {16, 64, 160}) {
    DeviceLayer layer(problem, weights, {.operands = GetParam(), .block_m = block_m});
    set_random_inputs(layer, 6);
    layer.forward(device_workers());
    const Outputs first = outputs_of(layer);
    constexpr int kWorkers[] = {132, 1, 3, 66, 2, 5, 17, 33, 64, 65, 90, 100, 127, 131, 132};
    for (int i = 0; i < 20; ++i) {
      const int workers = std::min(kWorkers[i % std::size(kWorkers)], device_workers());
      SCOPED_TRACE(testing::Message() << "block_m " << block_m << ", " << workers << " workers");
      layer.poison();
      flush_cache(scratch, i);
      layer.forward(workers);
      ASSERT_EQ(outputs_of(layer), first);
      ASSERT_TRUE(layer.counters_are_zero(0));
    }
    EXPECT_TRUE(layer.is_intact());
  }
}

TEST_P(Repeat, TwentyTimesOnFourRanks) {
  const Problem problem{
      .ranks = 4, .experts = 16, .topk = 4, .hidden = 1024, .intermediate = 544, .capacity = 60};
  const RandomWeights weights = random_weights(problem, 5, 5);
  Outputs first;
  for (const auto co_residence : kBothLaunches) {
    DeviceLayer layer(
        problem, weights, {.operands = GetParam(), .block_m = 32, .co_residence = co_residence});
    set_random_inputs(layer, 6);
    for (int i = 0; i < 20; ++i) {
      layer.poison();
      layer.prepare();
      // Ranks need not have equally many workers, nor start in their order.
      for (int r = 0; r < 4; ++r) {
        const int rank = (r + i) % 4;
        layer.launch(rank, 1 + (7 * i + 11 * rank) % (device_workers() / 4));
      }
      expect_cuda(cudaDeviceSynchronize(), "the call");
      layer.expect_no_fault();
      if (first.empty()) first = outputs_of(layer);
      ASSERT_EQ(outputs_of(layer), first) << "repetition " << i;
    }
    EXPECT_TRUE(layer.is_intact());
  }
}

// Layers of a model: other weights and another output, the same symmetric memory, one behind the
// other on each rank's stream; nobody waits on the host in between.
TEST_P(Repeat, LayersBackToBackOnOneBuffer) {
  constexpr int kLayers = 3;
  constexpr int kRounds = 5;
  const Problem problem{
      .ranks = 2, .experts = 8, .topk = 4, .hidden = 512, .intermediate = 288, .capacity = 70};
  std::vector<DeviceLayer> layers;
  std::vector<Outputs> alone;
  for (int l = 0; l < kLayers; ++l) {
    layers.emplace_back(problem,
                        random_weights(problem, 5, 10 + static_cast<unsigned>(l)),
                        DeviceLayer::Options{.operands = GetParam(), .block_m = l == 1 ? 64 : 32});
    set_random_inputs(layers.back(), 6);
    layers.back().forward(device_workers() / 2);
    alone.push_back(outputs_of(layers.back()));
    for (int r = 0; r < 2; ++r)
      layers.back().args(r).call.peers = layers.front().args(r).call.peers;
  }
  for (DeviceLayer& layer : layers)
    layer.prepare();
  for (int round = 0; round < kRounds; ++round)
    for (DeviceLayer& layer : layers)
      for (int r = 0; r < 2; ++r)
        sm90::launch(layer.args(r),
                     GetParam(),
                     device_workers() / 2 - round * 9,
                     sm90::CoResidence::kByDevice,
                     layers.front().stream(r));
  expect_cuda(cudaDeviceSynchronize(), "the layers");
  layers.front().expect_no_fault();
  for (int l = 0; l < kLayers; ++l)
    EXPECT_EQ(outputs_of(layers[static_cast<std::size_t>(l)]), alone[static_cast<std::size_t>(l)])
        << "layer " << l;
}

// A graph that was captured once reads the token count where it lies: none, some, all.
TEST_P(Repeat, ReplayedGraphsReadTheirTokenCounts) {
  for (const int ranks : {1, 2}) {
    const Problem problem{.ranks = ranks,
                          .experts = 8,
                          .topk = 4,
                          .hidden = 512,
                          .intermediate = 288,
                          .capacity = 64};
    const RandomWeights weights = random_weights(problem, 5, 15);
    DeviceLayer layer(
        problem,
        weights,
        {.operands = GetParam(),
         .block_m = 64,
         .co_residence = ranks == 1 ? sm90::CoResidence::kByDevice : sm90::CoResidence::kByCaller});
    const std::vector<RandomInput> inputs = set_random_inputs(layer, 16);
    layer.forward(device_workers() / ranks);
    const Outputs all = outputs_of(layer);
    std::vector<cudaGraphExec_t> graphs(static_cast<std::size_t>(ranks));
    for (int r = 0; r < ranks; ++r) {
      cudaGraph_t graph = nullptr;
      expect_cuda(cudaStreamBeginCapture(layer.stream(r), cudaStreamCaptureModeThreadLocal),
                  "beginning a capture");
      layer.launch(r, device_workers() / ranks);
      expect_cuda(cudaStreamEndCapture(layer.stream(r), &graph), "ending a capture");
      expect_cuda(cudaGraphInstantiate(&graphs[static_cast<std::size_t>(r)], graph, 0),
                  "making a graph executable");
      expect_cuda(cudaGraphDestroy(graph), "destroying a graph");
    }
    for (const int tokens : {0, 1, 17, problem.capacity, 5, problem.capacity, 0, 40}) {
      for (int r = 0; r < ranks; ++r) {
        const RandomInput& input = inputs[static_cast<std::size_t>(r)];
        layer.set_input(r, part_of(input, problem, 0, std::min(tokens, input.tokens)));
      }
      layer.poison();
      layer.prepare();
      for (int r = 0; r < ranks; ++r)
        expect_cuda(cudaGraphLaunch(graphs[static_cast<std::size_t>(r)], layer.stream(r)),
                    "replaying");
      expect_cuda(cudaDeviceSynchronize(), "the replay");
      layer.expect_no_fault();
      for (int r = 0; r < ranks; ++r) {
        std::vector<Bfloat16> wanted = all[static_cast<std::size_t>(r)];
        wanted.resize(layer.output(r).size());
        EXPECT_TRUE(same_bits(layer.output(r), wanted)) << tokens << " tokens, rank " << r;
      }
    }
    for (const cudaGraphExec_t graph : graphs)
      expect_cuda(cudaGraphExecDestroy(graph), "destroying a graph");
    EXPECT_TRUE(layer.is_intact());
  }
}

// A call on a part of the SMs ends while another kernel holds the rest of them.
TEST_P(Repeat, BesideAnotherKernel) {
  const Problem problem{
      .experts = 8, .topk = 4, .hidden = 512, .intermediate = 288, .capacity = 64};
  const RandomWeights weights = random_weights(problem, 5, 25);
  std::uint32_t* stop = nullptr;
  expect_cuda(cudaHostAlloc(reinterpret_cast<void**>(&stop), sizeof *stop, cudaHostAllocMapped),
              "pinned memory");
  DeviceBytes times(132 * sizeof(SpinTimes));
  Stream beside;
  prepare_spin();
  for (const auto co_residence : kBothLaunches) {
    DeviceLayer layer(
        problem, weights, {.operands = GetParam(), .block_m = 32, .co_residence = co_residence});
    set_random_inputs(layer, 26);
    layer.forward(device_workers());
    const Outputs alone = outputs_of(layer);
    layer.poison();
    layer.prepare();
    *static_cast<volatile std::uint32_t*>(stop) = 0;
    constexpr int kOthers = 30;
    expect_cuda(launch_spin({.workers = kOthers,
                             .nanoseconds = 3'000'000'000,
                             .stop = stop,
                             .times = times.as<SpinTimes>()},
                            beside),
                "another kernel");
    layer.launch(0, device_workers() - kOthers);
    layer.stream(0).wait();
    EXPECT_EQ(cudaStreamQuery(beside), cudaErrorNotReady) << "the other kernel has ended first";
    *static_cast<volatile std::uint32_t*>(stop) = 1;
    beside.wait();
    layer.expect_no_fault();
    EXPECT_EQ(outputs_of(layer), alone);
  }
  expect_cuda(cudaFreeHost(stop), "freeing pinned memory");
}

std::string name_of(const testing::TestParamInfo<sm90::Operands>& info) {
  return info.param == sm90::Operands::kFloat8 ? "fp8" : "bf16";
}

INSTANTIATE_TEST_SUITE_P(Hopper,
                         Repeat,
                         testing::Values(sm90::Operands::kFloat8, sm90::Operands::kBfloat16),
                         name_of);

}  // namespace
}  // namespace megamoe::test
