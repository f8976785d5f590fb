#pragma once

#include <cstdint>
#include <vector>

#include "device_ranks.hpp"
#include "machine/sm90/launch.hpp"

namespace megamoe::test {

// A layer's ranks on this card, with Hopper's kernels.
class DeviceLayer : public DeviceRanks {
 public:
  struct Options {
    sm90::Operands operands = sm90::Operands::kFloat8;
    int block_m = 16;
    int experts_per_wave = 1 << 20;
    std::int64_t pool_rows = 0;  // 0: the full pool
    std::uint64_t timeout_ms = 4000;
    sm90::CoResidence co_residence = sm90::CoResidence::kByDevice;
  };

  DeviceLayer(const Problem& problem, const RandomWeights& weights, const Options& options);

  // Of one rank: plans need not agree on it.
  void set_block_m(int rank, int block_m);
  // Other biases for the same weights.
  void set_biases(const RandomWeights& weights);

  // One call of all ranks, `workers` SMs each; throws when a rank left a fault record.
  void forward(int workers);
  // Its parts: what must precede the first launch, and one rank's launch.
  void prepare();
  void launch(int rank, int workers);
  // The arguments of a rank's call, to be changed before a launch.
  sm90::KernelArgs& args(int rank) { return weights_[static_cast<std::size_t>(rank)].args; }
  const sm90::KernelArgs& args(int rank) const {
    return weights_[static_cast<std::size_t>(rank)].args;
  }
  // Nothing was written beside any of the layer's buffers.
  bool is_intact() const;
  const Options& options() const { return options_; }

 private:
  struct RankWeights {
    DeviceBytes linear1, linear1_bases, linear2, linear2_bases;
    DeviceBiases biases;
    sm90::KernelArgs args;
  };

  void pack(RankWeights& rank, int index, const RandomWeights& weights);

  Options options_;
  std::vector<RankWeights> weights_;
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
