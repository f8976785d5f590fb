#pragma once

#include <algorithm>
#include <cstdio>
#include <vector>

#include "../device_memory.hpp"
#include "linears.cuh"
#include "machine/sm90/plans.hpp"
#include "protocol/workspace.hpp"

// How fast the two linears run without dispatch and combine: every expert has the same number of
// rows, weights are random and far larger than the L2 cache. Prints; asserts nothing.
namespace megamoe::test {

inline constexpr int kWorkers = 132;

inline __global__ void fill_random(std::uint32_t* words, std::size_t count, std::uint32_t mask) {
  for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < count;
       i += std::size_t{gridDim.x} * blockDim.x) {
    std::uint64_t r = i * 0x9E3779B97F4A7C15ULL + 12345;
    r ^= r >> 31;
    r *= 0xBF58476D1CE4E5B9ULL;
    r ^= r >> 29;
    words[i] = static_cast<std::uint32_t>(r) & mask;
  }
}

inline void fill(DeviceBytes& memory, std::uint32_t mask) {
  fill_random<<<1024, 256>>>(memory.as<std::uint32_t>(), memory.size() / 4, mask);
  expect_cuda(cudaDeviceSynchronize(), "filling");
}

struct Shape {
  const char* name;
  int hidden, intermediate, experts;
};

template <class Choice>
class LinearsBench {
 public:
  LinearsBench(const Shape& shape, int rows_per_expert)
      : shape_(shape), rows_per_expert_(rows_per_expert) {
    allocate();
    set_up_call();
    set_up_pool();
  }

  void measure() {
    const int bytes = sm90::shared_tail(sizeof(sm90::SharedStorage<kPlan>), problem_).end;
    auto* kernel = linears<Choice>;
    expect_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
                "shared");
    DeviceBytes clocks(kWorkers * sizeof(gpu::WorkerTimes));
    std::vector<float> times;
    cudaEvent_t start, stop;
    cudaEventCreate(&start);
    cudaEventCreate(&stop);
    constexpr int kTimed = 8;
    for (int i = 0; i <= kTimed; ++i) {
      expect_cuda(cudaMemset(at(args_.call.workspace.ready), 0, ring_words()), "ready");
      clocks.fill(0);
      // The last run counts clocks, which costs time; the first one warms up.
      args_.options.times = i == kTimed ? clocks.as<gpu::WorkerTimes>() : nullptr;
      cudaEventRecord(start);
      kernel<<<kWorkers, kPlan.threads(), bytes>>>(args_);
      cudaEventRecord(stop);
      expect_cuda(cudaDeviceSynchronize(), "linears");
      float ms = 0;
      cudaEventElapsedTime(&ms, start, stop);
      if (i > 0 && i < kTimed) times.push_back(ms);
    }
    cudaEventDestroy(start);
    cudaEventDestroy(stop);
    std::sort(times.begin(), times.end());
    print(times[times.size() / 2]);
    print_clocks(download<gpu::WorkerTimes>(clocks.as(), kWorkers));
  }

 private:
  static constexpr sm90::Plan kPlan = Choice::kPlan;

  void allocate() {
    problem_ = {.experts = shape_.experts,
                .topk = 1,
                .hidden = shape_.hidden,
                .intermediate = shape_.intermediate,
                .capacity = std::min(kMaxCapacity, shape_.experts * rows_per_expert_)};
    const auto experts = static_cast<std::size_t>(shape_.experts);
    const auto one = [&](Phase phase, DeviceBytes& codes, DeviceBytes& bases) {
      const sm90::WeightLayout layout = sm90::layout_of(problem_, kPlan.operands, phase);
      codes = DeviceBytes(experts * static_cast<std::size_t>(layout.bytes()));
      bases = DeviceBytes(experts * static_cast<std::size_t>(layout.padded_rows()) * 2);
      // Exponent fields are nibbles up to 11; random ones without the top bit are valid.
      fill(codes, kPlan.operands == sm90::Operands::kFloat8 ? 0x77777777U : 0xFFFFFFFFU);
      bases.fill(0);
      return sm90::LinearWeights{codes.as(), bases.as<std::int16_t>(), nullptr};
    };
    args_.linear1 = one(Phase::kLinear1, codes1_, bases1_);
    args_.linear2 = one(Phase::kLinear2, codes2_, bases2_);
  }

  void set_up_call() {
    Call& call = args_.call;
    call.problem = problem_;
    call.workspace = Workspace::plan(
        problem_, sm90::pool_format(problem_, kPlan.operands), full_pool_rows(problem_));
    call.ring = sm90::ring_of(problem_, kPlan.operands, kPlan.block_m, full_pool_rows(problem_));
    call.ring.settled_rows = 0;  // linear 2's rows lie in place too
    call.experts_per_wave = kMaxExperts;
    args_.options.timeout_ms = 3000;
    symmetric_ = DeviceBytes(call.workspace.bytes);
    fill(symmetric_, 0x3F3F3F3FU);
    expect_cuda(cudaMemset(symmetric_.as(), 0, call.workspace.zeroed_bytes), "cudaMemset");
    call.peers.base[0] = symmetric_.as();
  }

  // All rows have arrived, and both gates that the roles ask for are open.
  void set_up_pool() {
    const Workspace& w = args_.call.workspace;
    const auto rows = static_cast<std::size_t>(full_pool_rows(problem_));
    const CountAndMarks count{static_cast<std::uint32_t>(rows_per_expert_), 1};
    put(w.received_sum,
        std::vector<ReceivedSum>(static_cast<std::size_t>(shape_.experts), {count.word()}));
    put(w.arrived, std::vector<ArrivedRows>(ring_words() / 4, ArrivedRows{1U << 30}));
    put(w.gate, std::vector<Gate>{Gate{2}});
    std::vector<SourceSlot> source(rows);
    for (std::size_t i = 0; i < rows; ++i)
      source[i] = {0, static_cast<std::uint32_t>(i % static_cast<std::size_t>(problem_.capacity))};
    put(w.row_source, source);
    put(Sym<std::int32_t>{w.linear1_scales.offset}, std::vector<std::int32_t>(rows, -8));
    put(w.row_weight, std::vector<float>(rows, 0.5F));
  }

  template <class T>
  std::byte* at(Sym<T> place) const {
    return symmetric_.as() + place.offset;
  }
  template <class T, class V>
  void put(Sym<T> place, const std::vector<V>& values) {
    expect_cuda(
        cudaMemcpy(at(place), values.data(), values.size() * sizeof(V), cudaMemcpyHostToDevice),
        "setting up");
  }
  std::size_t ring_words() const { return static_cast<std::size_t>(args_.call.ring.blocks) * 4; }

  void print(double ms) const {
    const int blocks = ceil_div(rows_per_expert_, kPlan.block_m);
    const double bytes = static_cast<double>(codes1_.size() + codes2_.size());
    const double flops =
        6.0 * shape_.hidden * shape_.intermediate * shape_.experts * rows_per_expert_;
    std::printf(
        "%-6s %s block_m %3d, %4d rows an expert, %2d stages: %8.1f us, %6.0f GB/s of weights "
        "(x %d), "
        "%6.0f TFLOP/s\n",
        shape_.name,
        kPlan.operands == sm90::Operands::kFloat8 ? "fp8 " : "bf16",
        kPlan.block_m,
        rows_per_expert_,
        kPlan.stages,
        ms * 1e3,
        bytes / ms / 1e6,
        blocks,
        flops / ms / 1e9);
  }

  static void print_clocks(const std::vector<gpu::WorkerTimes>& spent) {
    constexpr const char* kNames[] = {"linear 1 multiply", "store", "linear 2 multiply", "store"};
    std::printf("       thousands of clocks a worker:");
    for (int what = 0; what < 4; ++what) {
      double sum = 0;
      for (const auto& worker : spent)
        sum += static_cast<double>(worker.milestones[what]);
      std::printf(" %s %.0f", kNames[what], sum / kWorkers / 1e3);
    }
    std::printf("\n");
    std::fflush(stdout);
  }

  Shape shape_;
  int rows_per_expert_;
  Problem problem_;
  sm90::KernelArgs args_;
  DeviceBytes codes1_, bases1_, codes2_, bases2_, symmetric_;
};

// A block and, where several share the weights, eight blocks an expert.
template <class Choice>
void measure_linears() {
  for (const Shape& shape : {Shape{"flash", 4096, 2048, 32}, Shape{"v3", 7168, 2048, 32}})
    for (const int blocks : {1, 8}) {
      if (blocks > 1 && Choice::kPlan.block_m <= 32) continue;
      LinearsBench<Choice> bench(shape, blocks * Choice::kPlan.block_m);
      bench.measure();
    }
}

}  // namespace megamoe::test
