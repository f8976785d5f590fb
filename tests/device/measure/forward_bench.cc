#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "../device_memory.hpp"
#include "machine/sm90/launch.hpp"
#include "machine/sm90/plans.hpp"

// Whole calls of one rank, the L2 cache flushed before each: microseconds, share of the floor, and
// when the workers reached the call's milestones. Prints; asserts nothing.
namespace megamoe::test {
namespace {

struct Shape {
  const char* name;
  int hidden, intermediate, experts, topk;
};

constexpr double kReadBytesPerSecond = 4.56e12;
constexpr double kFlopsPerSecond = 1.442e15;

// Tile sizes worth trying for this many rows an expert.
std::vector<int> block_sizes_for(double rows) {
  std::vector<int> sizes;
  for (const int size : sm90::kBlockSizes)
    if ((size >= rows * 0.9 && size <= rows * 2.5 + 16) || (size == 160 && rows > 128))
      sizes.push_back(size);
  return sizes;
}

DeviceBytes random_bytes(std::size_t bytes, std::uint8_t mask) {
  std::vector<std::uint64_t> pattern((std::size_t{16} << 20) / 8);
  std::mt19937_64 random(1);
  for (auto& word : pattern)
    word = random() & (0x0101010101010101ULL * mask);
  DeviceBytes memory(bytes);
  for (std::size_t at = 0; at < bytes; at += pattern.size() * 8)
    expect_cuda(cudaMemcpy(memory.as() + at,
                           pattern.data(),
                           std::min(bytes - at, pattern.size() * 8),
                           cudaMemcpyHostToDevice),
                "random bytes");
  return memory;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

class Layer {
 public:
  Layer(const Shape& shape, sm90::Operands operands) : shape_(shape), operands_(operands) {
    const Problem problem = problem_for(1);
    const sm90::WeightLayout l1 = sm90::layout_of(problem, operands, Phase::kLinear1);
    const sm90::WeightLayout l2 = sm90::layout_of(problem, operands, Phase::kLinear2);
    const auto experts = static_cast<std::size_t>(shape.experts);
    linear1_ = random_bytes(experts * static_cast<std::size_t>(l1.bytes()), 0xBB);
    linear2_ = random_bytes(experts * static_cast<std::size_t>(l2.bytes()), 0xBB);
    bases1_ = DeviceBytes(experts * static_cast<std::size_t>(l1.padded_rows()) * 2);
    bases2_ = DeviceBytes(experts * static_cast<std::size_t>(l2.padded_rows()) * 2);
    bases1_.fill(0);
    bases2_.fill(0);
    flush_ = DeviceBytes(std::size_t{256} << 20);
  }

  void measure(int tokens, int block_m) {
    const Problem problem = problem_for(tokens);
    const std::int64_t pool_rows = full_pool_rows(problem);
    sm90::KernelArgs args;
    Call& call = args.call;
    call.problem = problem;
    call.workspace = Workspace::plan(problem, sm90::pool_format(problem, operands_), pool_rows);
    DeviceBytes symmetric = random_bytes(call.workspace.bytes, 0x3F);
    expect_cuda(cudaMemset(symmetric.as(), 0, call.workspace.zeroed_bytes), "cudaMemset");
    call.peers.base[0] = symmetric.as();
    call.ring = sm90::ring_of(problem, operands_, block_m, pool_rows);
    call.experts_per_wave = kMaxExperts;
    DeviceBytes count = upload(std::vector<std::int32_t>{tokens});
    DeviceBytes output(static_cast<std::size_t>(tokens) * static_cast<std::size_t>(shape_.hidden) *
                       2);
    call.num_tokens = count.as<std::int32_t>();
    call.output = output.as<Bfloat16>();
    args.linear1 = {linear1_.as(), bases1_.as<std::int16_t>(), nullptr};
    args.linear2 = {linear2_.as(), bases2_.as<std::int16_t>(), nullptr};
    args.options.timeout_ms = 3000;
    const int hit = route(symmetric, call.workspace, tokens);
    constexpr int kWorkers = 132;
    DeviceBytes times(kWorkers * sizeof(gpu::WorkerTimes));
    args.options.times = times.as<gpu::WorkerTimes>();

    std::vector<double> micros;
    std::vector<gpu::WorkerTimes> last;
    cudaEvent_t start, stop;
    cudaEventCreate(&start);
    cudaEventCreate(&stop);
    for (int i = 0; i < 12; ++i) {
      // The host is ahead of the card from here on: what it takes to launch is not in the time.
      flush_.fill(i);
      cudaEventRecord(start);
      sm90::launch(args, operands_, kWorkers, sm90::CoResidence::kByDevice, nullptr);
      cudaEventRecord(stop);
      expect_cuda(cudaDeviceSynchronize(), "forward");
      float ms = 0;
      cudaEventElapsedTime(&ms, start, stop);
      if (i >= 2) micros.push_back(static_cast<double>(ms) * 1e3);
      last = download<gpu::WorkerTimes>(times.as(), kWorkers);
    }
    print(tokens, block_m, hit, micros, last);
    const auto claims =
        download<FaultClaims>(symmetric.as() + call.workspace.fault_claims.offset, 1)[0].value;
    if (claims != 0) std::printf("    GAVE UP\n");
    std::fflush(stdout);
  }

 private:
  Problem problem_for(int tokens) const {
    return {.experts = shape_.experts,
            .topk = shape_.topk,
            .hidden = shape_.hidden,
            .intermediate = shape_.intermediate,
            .capacity = tokens};
  }

  // Uniform routing; returns how many experts have rows.
  int route(const DeviceBytes& symmetric, const Workspace& w, int tokens) const {
    std::mt19937_64 random(3);
    std::vector<std::int64_t> ids;
    std::vector<bool> is_hit(static_cast<std::size_t>(shape_.experts));
    std::vector<std::int64_t> experts(static_cast<std::size_t>(shape_.experts));
    for (std::size_t e = 0; e < experts.size(); ++e)
      experts[e] = static_cast<std::int64_t>(e);
    for (int t = 0; t < tokens; ++t) {
      std::shuffle(experts.begin(), experts.end(), random);
      for (int k = 0; k < shape_.topk; ++k) {
        ids.push_back(experts[static_cast<std::size_t>(k)]);
        is_hit[static_cast<std::size_t>(ids.back())] = true;
      }
    }
    const auto put = [&](auto place, const auto& values) {
      expect_cuda(cudaMemcpy(symmetric.as() + place.offset,
                             values.data(),
                             values.size() * sizeof(values[0]),
                             cudaMemcpyHostToDevice),
                  "routing");
    };
    put(w.topk_ids, ids);
    put(w.topk_weights, std::vector<float>(ids.size(), 0.125F));
    std::vector<std::uint8_t> scales(static_cast<std::size_t>(tokens * shape_.hidden / 32));
    for (auto& scale : scales)
      scale = static_cast<std::uint8_t>(115 + random() % 3);
    put(w.token_scales, scales);
    return static_cast<int>(std::count(is_hit.begin(), is_hit.end(), true));
  }

  void print(int tokens,
             int block_m,
             int hit,
             const std::vector<double>& micros,
             const std::vector<gpu::WorkerTimes>& times) const {
    const double cells = 3.0 * shape_.hidden * shape_.intermediate;
    const double bytes = hit * cells * 0.53125 + tokens * shape_.topk * 3.0 * shape_.hidden;
    const double flops = 2.0 * cells * tokens * shape_.topk;
    const double floor = std::max(bytes / kReadBytesPerSecond, flops / kFlopsPerSecond) * 1e6;
    const double us = median(micros);
    std::uint64_t begin = ~0ULL;
    for (const auto& t : times)
      begin = std::min(begin, t.start);
    const auto range = [&](auto pick) {
      std::uint64_t first = ~0ULL, final = 0;
      for (const auto& t : times) {
        first = std::min(first, pick(t));
        final = std::max(final, pick(t));
      }
      std::printf(" %.0f-%.0f",
                  static_cast<double>(first - begin) / 1e3,
                  static_cast<double>(final - begin) / 1e3);
    };
    std::printf(
        "%-6s %s T=%5d N=%3d: %8.1f us floor %7.1f ratio %5.2f | %6.0f GB/s %6.0f TFLOP/s | us:",
        shape_.name,
        operands_ == sm90::Operands::kFloat8 ? "fp8 " : "bf16",
        tokens,
        block_m,
        us,
        floor,
        us / floor,
        bytes / us / 1e3,
        flops / us / 1e6);
    for (int m = 0; m < 4; ++m)
      range([m](const gpu::WorkerTimes& t) { return t.milestones[m]; });
    range([](const gpu::WorkerTimes& t) { return t.end; });
    std::printf("\n");
  }

  Shape shape_;
  sm90::Operands operands_;
  DeviceBytes linear1_, linear2_, bases1_, bases2_, flush_;
};

}  // namespace
}  // namespace megamoe::test

// forward_bench [shape [bf16]]
int main(int count, char** arguments) {
  using namespace megamoe::test;
  using megamoe::sm90::Operands;
  const std::string only = count > 1 ? arguments[1] : "";
  const bool is_exact = count > 2;
  for (const Shape& shape : {Shape{"flash", 4096, 2048, 32, 6},
                             Shape{"v3", 7168, 2048, 32, 8},
                             Shape{"pro", 7168, 3072, 48, 6}}) {
    if (!only.empty() && only != shape.name) continue;
    Layer layer(shape, is_exact ? Operands::kBfloat16 : Operands::kFloat8);
    for (const int tokens : {1, 8, 32, 128, 512, 2048, 8192})
      for (const int block_m :
           block_sizes_for(static_cast<double>(tokens) * shape.topk / shape.experts))
        layer.measure(tokens, block_m);
  }
  return 0;
}
