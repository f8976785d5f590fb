#pragma once

#include <vector>

#include "device_ranks.hpp"
#include "machine/sm100/emulated/kernels.hpp"
#include "machine/sm100/weight_map.hpp"

namespace megamoe::test {

// A layer's ranks on this Hopper card, with Blackwell's kernels in their emulated form.
class EmulatedLayer : public DeviceRanks {
 public:
  struct Options {
    int block_m = 16;
    int experts_per_wave = 1 << 20;
    std::int64_t pool_rows = 0;  // 0: the full pool
    int workers = 8;             // SMs of each rank
    emulation::Modes modes{};
    std::uint64_t timeout_ms = 15'000;
    gpu::CoResidence co_residence = gpu::CoResidence::kByCaller;
  };

  EmulatedLayer(const Problem& problem, const RandomWeights& weights, const Options& options);

  // One call of all ranks; throws when a rank left a fault record, or the emulation complains.
  void forward();
  // Its parts.
  void prepare();
  void launch(int rank);
  void finish();
  sm100::KernelArgs& args(int rank) { return ranks_[static_cast<std::size_t>(rank)].args; }
  const Options& options() const { return options_; }

 private:
  struct Rank {
    explicit Rank(const emulation::EmulatorOptions& options) : emulator(options) {}

    emulation::Emulator emulator;
    sm100::KernelInstance kernel;
    DeviceBytes linear1, linear1_scales, linear2, linear2_scales;
    DeviceBiases biases;
    sm100::KernelArgs args;
  };

  void add_rank(int rank, const RandomWeights& weights);
  void pack(Rank& state, int rank, const RandomWeights& weights);

  Options options_;
  std::vector<Rank> ranks_;
};

}  // namespace megamoe::test
