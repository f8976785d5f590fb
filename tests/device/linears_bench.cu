#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "device_memory.hpp"
#include "linears.cuh"
#include "machine/sm90/plans.hpp"
#include "protocol/workspace.hpp"

// One executable measures one kernel.
#ifndef MEGAMOE_BENCH_BLOCK_M
#define MEGAMOE_BENCH_BLOCK_M 16
#endif
#ifndef MEGAMOE_BENCH_OPERANDS
#define MEGAMOE_BENCH_OPERANDS Operands::kFloat8
#endif

// How fast the two linears run without dispatch and combine, and the main loop without its epilogues: every expert has the same number of rows, weights are random
// and far larger than the L2 cache. Prints; asserts nothing.
namespace megamoe::test {
namespace {

__global__ void fill_random(std::uint32_t* words, std::size_t count, std::uint32_t mask, std::uint32_t bits) {
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < count;
       i += std::size_t{gridDim.x} * blockDim.x) {
    std::uint64_t r = i * 0x9E3779B97F4A7C15ULL + 12345;
    r ^= r >> 31;
    r *= 0xBF58476D1CE4E5B9ULL;
    r ^= r >> 29;
    words[i] = (static_cast<std::uint32_t>(r) & mask) | bits;
  }
}

void fill(DeviceBytes& memory, std::uint32_t mask, std::uint32_t bits) {
  fill_random<<<1024, 256>>>(memory.as<std::uint32_t>(), memory.size() / 4, mask, bits);
  expect_cuda(cudaDeviceSynchronize(), "filling");
}

struct Shape {
  const char* name;
  int hidden, intermediate, experts;
};

template <sm90::Operands kOperands, int kBlockM, bool kStores>
void measure(const Shape& shape, int rows_per_expert) {
  using Chosen = sm90::Choice<kOperands, kBlockM>;
  constexpr sm90::Plan kPlan = Chosen::kPlan;
  const Problem problem{.experts = shape.experts,
                        .topk = 1,
                        .hidden = shape.hidden,
                        .intermediate = shape.intermediate,
                        .capacity = std::min(65536, shape.experts * rows_per_expert)};
  sm90::KernelArgs args;
  Call& call = args.call;
  call.problem = problem;
  call.workspace =
      Workspace::plan(problem, sm90::pool_format(problem, kOperands), full_pool_rows(problem));
  const sm90::WeightLayout l1 = sm90::layout_of(problem, kOperands, Phase::kLinear1);
  const sm90::WeightLayout l2 = sm90::layout_of(problem, kOperands, Phase::kLinear2);
  call.ring = {static_cast<int>(full_pool_rows(problem) / kBlockM), kBlockM, l1.blocks(), l2.blocks()};
  call.experts_per_wave = std::getenv("WAVE") ? std::atoi(std::getenv("WAVE")) : 1 << 20;
  args.options.timeout_ms = 3000;
  const auto experts = static_cast<std::size_t>(shape.experts);
  DeviceBytes w1(experts * l1.bytes()), w2(experts * l2.bytes());
  DeviceBytes b1(experts * l1.padded_rows() * 2), b2(experts * l2.padded_rows() * 2);
  // Exponent fields share words with nothing but each other only at a slab's end; any nibble up to 11 is valid, and
  // random ones above only make large numbers: the time is the same.
  fill(w1, 0xFFFFFFFFU, 0);
  fill(w2, 0xFFFFFFFFU, 0);
  b1.fill(0);
  b2.fill(0);
  args.linear1 = {w1.as(), b1.as<std::int16_t>(), nullptr};
  args.linear2 = {w2.as(), b2.as<std::int16_t>(), nullptr};
  DeviceBytes symmetric(call.workspace.bytes);
  fill(symmetric, 0x3F3F3F3FU, 0);
  expect_cuda(cudaMemset(symmetric.as(), 0, call.workspace.zeroed_bytes), "cudaMemset");
  call.peers.base[0] = symmetric.as();
  const auto put = [&](auto place, const auto& values) {
    expect_cuda(cudaMemcpy(symmetric.as() + place.offset,
                           values.data(),
                           values.size() * sizeof(values[0]),
                           cudaMemcpyHostToDevice),
                "setting counters");
  };
  const Workspace& w = call.workspace;
  std::vector<ReceivedSum> sums(experts, ReceivedSum{CountAndMarks{static_cast<std::uint32_t>(rows_per_expert), 1}.word()});
  put(w.received_sum, sums);
  std::vector<ArrivedRows> arrived(static_cast<std::size_t>(call.ring.blocks), ArrivedRows{1U << 30});
  put(w.arrived, arrived);
  put(w.gate, std::vector<Gate>{Gate{2}});
  const int blocks_per_expert = ceil_div(rows_per_expert, kBlockM);
  std::vector<SourceSlot> source(static_cast<std::size_t>(full_pool_rows(problem)));
  for (std::size_t i = 0; i < source.size(); ++i)
    source[i] = {0, static_cast<std::uint32_t>(i % static_cast<std::size_t>(problem.capacity))};
  put(w.row_source, source);
  put(Sym<std::int32_t>{w.linear1_scales.offset}, std::vector<std::int32_t>(source.size(), -8));
  std::vector<float> weights(source.size(), 0.5F);
  put(w.row_weight, weights);

  const int bytes = sm90::shared_tail(sizeof(sm90::SharedStorage<kPlan>), problem).end;
  auto* kernel = linears<Chosen, kStores>;
  expect_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes), "shared");
  cudaEvent_t start, stop;
  cudaEventCreate(&start);
  cudaEventCreate(&stop);
  DeviceBytes clocks(132 * sizeof(gpu::WorkerTimes));
  std::vector<float> times;
  for (int i = 0; i < 9; ++i) {
    expect_cuda(cudaMemset(symmetric.as() + w.ready.offset, 0, static_cast<std::size_t>(call.ring.blocks) * 4), "ready");
    clocks.fill(0);
    args.options.times = i == 8 ? clocks.as<gpu::WorkerTimes>() : nullptr;
    cudaEventRecord(start);
    kernel<<<132, kPlan.threads(), bytes>>>(args);
    cudaEventRecord(stop);
    expect_cuda(cudaDeviceSynchronize(), "linears");
    float ms = 0;
    cudaEventElapsedTime(&ms, start, stop);
    if (i > 0 && i < 8) times.push_back(ms);
  }
  const auto claims = download<FaultClaims>(symmetric.as() + w.fault_claims.offset, 1)[0].value;
  std::sort(times.begin(), times.end());
  const double ms = times[times.size() / 2];
  const double weight_bytes = static_cast<double>(w1.size() + w2.size());
  const double flops = 6.0 * shape.hidden * shape.intermediate * shape.experts * rows_per_expert;
  std::printf("%-6s %s %s N=%3d rows/expert %4d (%d blocks) stages %2d: %8.1f us | %6.0f GB/s weights (%.0f x blocks) | %6.0f TFLOP/s%s\n",
              shape.name,
              kStores ? "linears " : "mainloop",
              kOperands == sm90::Operands::kFloat8 ? "fp8 " : "bf16",
              kBlockM,
              rows_per_expert,
              blocks_per_expert,
              kPlan.stages,
              ms * 1e3,
              weight_bytes / ms / 1e6,
              weight_bytes * blocks_per_expert / ms / 1e6,
              flops / ms / 1e9,
              claims != 0 ? "  GAVE UP" : "");
  const auto spent = download<gpu::WorkerTimes>(clocks.as(), 132);
  std::printf("      clocks, mean of the workers:");
  for (int what = 0; what < 4; ++what) {
    double sum = 0;
    for (const auto& worker : spent)
      sum += static_cast<double>(worker.milestones[what]);
    std::printf(" %s %.0fk", (const char*[]){"L1 multiply", "store", "L2 multiply", "store"}[what], sum / 132e3);
  }
  std::printf("\n");
  std::fflush(stdout);
  cudaEventDestroy(start);
  cudaEventDestroy(stop);
}

}  // namespace
}  // namespace megamoe::test

int main() {
  using namespace megamoe::test;
  using megamoe::sm90::Operands;
  constexpr int kBlockM = MEGAMOE_BENCH_BLOCK_M;
  for (const Shape& shape : {Shape{"flash", 4096, 2048, 32}, Shape{"v3", 7168, 2048, 32}})
    for (const int rows : {kBlockM, 8 * kBlockM}) {
      if (rows > kBlockM && kBlockM <= 32) continue;
      measure<MEGAMOE_BENCH_OPERANDS, kBlockM, false>(shape, rows);
      measure<MEGAMOE_BENCH_OPERANDS, kBlockM, true>(shape, rows);
    }
  return 0;
}
