#pragma once

#include "machine/cpu/workers.hpp"
#include "runtime/memory/host_memory.hpp"
#include "runtime/rank_machine.hpp"

namespace megamoe {

/// The CPU machine as the runtime sees it.
class CpuMachine : public RankMachine {
 public:
  CpuMachine(const LayerOptions& options, int ranks);

  static Limits limits_for(const LayerOptions& options, int ranks);

  std::string name() const override;
  const Limits& limits() const override { return limits_; }
  MemoryKind& memory() override { return memory_; }
  bool masks_bad_ids() const override { return false; }
  std::unique_ptr<MachineWeights> make_weights(const Problem& problem) const override;
  void join(Link&, std::uint64_t) override {}
  void require_stream(const CallOrder& order) const override;
  void begin(const Call& call,
             const Plan& plan,
             const MachineWeights& weights,
             const CallOrder& order) override;
  void finish(const CallOrder&) override {}  // begin() does all of it
  void finish_all() override {}
  PhaseTimes times() const override;
  std::vector<double> time_calls(const Call& call,
                                 const Plan& plan,
                                 const MachineWeights& weights,
                                 std::uint64_t timeout_ms,
                                 const TimedCalls& what) override;
  int device() const override { return -1; }

 private:
  Limits limits_;
  HostMemory memory_;
  cpu::Workers workers_;
};

}  // namespace megamoe
