#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "megamoe/call_report.hpp"
#include "megamoe/layer_options.hpp"
#include "megamoe/plan.hpp"
#include "megamoe/weights.hpp"
#include "plan/limits.hpp"
#include "protocol/call.hpp"

namespace megamoe {

/// A rank's experts in a machine's own layout.
class MachineWeights {
 public:
  virtual ~MachineWeights() = default;
  /// Packs a local expert from the first expert of `view`, which is not needed afterwards.
  virtual void pack(int local_expert, const WeightView& view) = 0;
  virtual std::uint64_t bytes() const = 0;
};

/// What executes a rank's part of a call. One implementation a machine; chosen at run time.
class RankMachine {
 public:
  virtual ~RankMachine() = default;

  /// What decides the bits of its results, such as "cpu/avx2"; the same on all ranks.
  virtual std::string name() const = 0;
  virtual const Limits& limits() const = 0;
  virtual std::unique_ptr<MachineWeights> make_weights(const Problem& problem) const = 0;

  /// One call, collective over ranks, with weights of this machine's. False when it was abandoned;
  /// the rank's fault record then says where.
  [[nodiscard]] virtual bool run(const Call& call,
                                 const Plan& plan,
                                 const MachineWeights& weights,
                                 std::uint64_t timeout_ms) = 0;
  /// Of the last call.
  virtual PhaseTimes times() const = 0;
};

/// The machine that the options name, for one of `ranks` ranks on this computer. Throws Error:
/// kInvalidArgument for an unknown name, kUnsupportedMachine for one that is not here.
std::unique_ptr<RankMachine> make_machine(const LayerOptions& options, int ranks);

/// Its limits, without making it.
Limits limits_of_machine(const LayerOptions& options, int ranks);

}  // namespace megamoe
