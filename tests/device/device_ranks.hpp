#pragma once

#include <cstdint>
#include <vector>

#include "device_memory.hpp"
#include "protocol/call.hpp"
#include "random_layer.hpp"

namespace megamoe::test {

// A layer's ranks on this card, each with its own symmetric memory and stream: what does not depend
// on the machine.
class DeviceRanks {
 public:
  DeviceRanks(const Problem& problem, const PoolFormat& format, std::int64_t pool_rows);

  void set_input(int rank, const RandomInput& input);
  // 0xFF in everything that a call writes before it reads, so that nothing of an earlier call can
  // stand in for what this one leaves out.
  void poison();
  void expect_no_fault() const;
  // Every counter and word back to the start, as after a failed call.
  void reset();

  template <class T>
  std::vector<T> read(int rank, Sym<T> place, std::size_t count) const {
    return download<T>(symmetric(rank) + place.offset, count);
  }
  std::vector<Bfloat16> output(int rank) const;
  FaultRecord fault(int rank) const { return read(rank, workspace_.fault, 1)[0]; }
  std::uint32_t fault_claims(int rank) const {
    return read(rank, workspace_.fault_claims, 1)[0].value;
  }
  // Nothing was written beside any of the ranks' buffers.
  bool is_intact() const;
  // The words that a call must leave at zero are.
  bool counters_are_zero(int rank) const;

  const Workspace& workspace() const { return workspace_; }
  const Problem& problem() const { return problem_; }
  std::byte* symmetric(int rank) const { return of(rank).symmetric.as(); }
  std::int32_t* num_tokens(int rank) const { return of(rank).num_tokens.as<std::int32_t>(); }
  const Stream& stream(int rank) const { return of(rank).stream; }

 protected:
  // A rank's call but for its ring.
  Call call_of(int rank) const;
  // Outputs hold nothing of an earlier call.
  void clear_outputs();

 private:
  struct Rank {
    DeviceBytes symmetric, output, num_tokens;
    Stream stream;
    int tokens = 0;
  };

  const Rank& of(int rank) const { return ranks_[static_cast<std::size_t>(rank)]; }

  Problem problem_;
  Workspace workspace_;
  std::vector<Rank> ranks_;
};

// Biases of the experts of one rank, on the device; null where the layer has none.
struct DeviceBiases {
  DeviceBytes linear1, linear2;
};
DeviceBiases upload_biases(const Problem& problem, const RandomWeights& weights, int rank);

}  // namespace megamoe::test
