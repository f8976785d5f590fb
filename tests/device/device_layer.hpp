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
    sm90::CoResidence co_residence = sm90::CoResidence::kByDevice;
  };

  DeviceLayer(const Problem& problem, const RandomWeights& weights, const Options& options);

  void set_input(int rank, const RandomInput& input);
  // Of one rank: plans need not agree on it.
  void set_block_m(int rank, int block_m);
  // Other biases for the same weights.
  void set_biases(const RandomWeights& weights);
  // 0xFF in everything that a call writes before it reads, so that nothing of an earlier call can
  // stand in for what this one leaves out.
  void poison();

  // One call of all ranks, `workers` SMs each; throws when a rank left a fault record.
  void forward(int workers);
  // Its parts: what must precede the first launch, one rank's launch, and the end of all of them.
  void prepare();
  void launch(int rank, int workers);
  void expect_no_fault() const;
  // Every counter and word back to the start, as after a failed call.
  void reset();
  // The arguments of a rank's call, to be changed before a launch.
  sm90::KernelArgs& args(int rank) { return ranks_[static_cast<std::size_t>(rank)].args; }
  const sm90::KernelArgs& args(int rank) const { return of(rank).args; }

  template <class T>
  std::vector<T> read(int rank, Sym<T> place, std::size_t count) const {
    return download<T>(symmetric(rank) + place.offset, count);
  }
  std::vector<Bfloat16> output(int rank) const;
  FaultRecord fault(int rank) const { return read(rank, workspace_.fault, 1)[0]; }
  std::uint32_t fault_claims(int rank) const {
    return read(rank, workspace_.fault_claims, 1)[0].value;
  }
  // Nothing was written beside any of the layer's buffers.
  bool is_intact() const;
  // The words that a call must leave at zero are.
  bool counters_are_zero(int rank) const;

  const Workspace& workspace() const { return workspace_; }
  const Problem& problem() const { return problem_; }
  const Options& options() const { return options_; }
  std::byte* symmetric(int rank) const { return of(rank).symmetric.as(); }
  std::int32_t* num_tokens(int rank) const { return of(rank).num_tokens.as<std::int32_t>(); }
  const Stream& stream(int rank) const { return of(rank).stream; }

 private:
  struct Rank {
    DeviceBytes symmetric, output, num_tokens;
    DeviceBytes linear1, linear1_bases, linear1_bias, linear2, linear2_bases, linear2_bias;
    Stream stream;
    sm90::KernelArgs args;
    int tokens = 0;
  };

  const Rank& of(int rank) const { return ranks_[static_cast<std::size_t>(rank)]; }
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
