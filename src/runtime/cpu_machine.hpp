#pragma once

#include "machine/cpu/workers.hpp"
#include "runtime/rank_machine.hpp"

namespace megamoe {

/// The CPU machine as the runtime sees it.
class CpuMachine : public RankMachine {
 public:
  CpuMachine(const LayerOptions& options, int ranks);

  static Limits limits_for(const LayerOptions& options, int ranks);

  std::string name() const override;
  const Limits& limits() const override { return limits_; }
  std::unique_ptr<MachineWeights> make_weights(const Problem& problem) const override;
  bool run(const Call& call,
           const Plan& plan,
           const MachineWeights& weights,
           std::uint64_t timeout_ms) override;
  PhaseTimes times() const override;

 private:
  Limits limits_;
  cpu::Workers workers_;
};

}  // namespace megamoe
