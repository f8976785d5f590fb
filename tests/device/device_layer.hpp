#pragma once

#include <cstdint>
#include <vector>

#include "device_memory.hpp"
#include "machine/sm90/launch.hpp"
#include "random_layer.hpp"

namespace megamoe::test {

// A layer's ranks on this card, each with its own symmetric memory and stream.
class DeviceLayer {
 public:
  struct Options {
    sm90::Operands operands = sm90::Operands::kFloat8;
    int block_m = 16;
    int experts_per_wave = 1 << 20;
    std::int64_t pool_rows = 0;  // 0: the full pool
    std::uint64_t timeout_ms = 4000;
    sm90::CoResidence co_residence = sm90::CoResidence::kByCaller;
  };

  DeviceLayer(const Problem& problem, const RandomWeights& weights, const Options& options);

  void set_input(int rank, const RandomInput& input);
  // One call of all ranks, `workers` SMs each; throws when a rank left a fault record.
  void forward(int workers);
  // The arguments of a rank's call, to be changed before forward().
  sm90::KernelArgs& args(int rank) { return ranks_[static_cast<std::size_t>(rank)].args; }

  template <class T>
  std::vector<T> read(int rank, Sym<T> place, std::size_t count) const {
    return download<T>(symmetric(rank) + place.offset, count);
  }
  std::vector<Bfloat16> output(int rank) const;
  const Workspace& workspace() const { return workspace_; }
  const Problem& problem() const { return problem_; }
  const Options& options() const { return options_; }
  std::byte* symmetric(int rank) const {
    return ranks_[static_cast<std::size_t>(rank)].symmetric.as();
  }
  cudaStream_t stream(int rank) const { return ranks_[static_cast<std::size_t>(rank)].stream; }

 private:
  struct Rank {
    DeviceBytes symmetric, output, num_tokens;
    DeviceBytes linear1, linear1_bases, linear1_bias, linear2, linear2_bases, linear2_bias;
    cudaStream_t stream = nullptr;
    sm90::KernelArgs args;
    int tokens = 0;
  };

  void pack(Rank& rank, int index, const RandomWeights& weights);

  Problem problem_;
  Options options_;
  Workspace workspace_;
  std::vector<Rank> ranks_;
};

// Packs the experts of one rank for the device.
struct PackedExperts {
  std::vector<std::byte> codes;
  std::vector<std::int16_t> bases;
};
PackedExperts pack_experts(const Problem& problem,
                           const WeightView& of_rank,
                           sm90::Operands operands,
                           Phase phase);

}  // namespace megamoe::test
