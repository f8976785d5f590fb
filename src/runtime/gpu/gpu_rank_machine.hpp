#pragma once

#include <cuda_runtime_api.h>

#include <vector>

#include "runtime/gpu/device_memory.hpp"
#include "runtime/gpu/kernel_set.hpp"
#include "runtime/gpu/placement.hpp"
#include "runtime/rank_machine.hpp"

namespace megamoe {

/// A GPU machine as the runtime sees it: one launch a call, on the rank's card. What differs by
/// kind is in its set of kernels.
class GpuRankMachine : public RankMachine {
 public:
  GpuRankMachine(const GpuKind& kind, const LayerOptions& options, const RankPlace& place);
  ~GpuRankMachine() override;
  GpuRankMachine(const GpuRankMachine&) = delete;
  GpuRankMachine& operator=(const GpuRankMachine&) = delete;

  static Limits limits_for(const GpuKind& kind, const LayerOptions& options);

  std::string name() const override;
  const Limits& limits() const override { return limits_; }
  MemoryKind& memory() override { return *memory_; }
  bool masks_bad_ids() const override { return true; }
  std::unique_ptr<MachineWeights> make_weights(const Problem& problem) const override;
  void join(Link& link, std::uint64_t timeout_ms) override;
  void require_stream(const CallOrder& order) const override;
  void begin(const Call& call,
             const Plan& plan,
             const MachineWeights& weights,
             const CallOrder& order) override;
  void finish(const CallOrder& order) override;
  void finish_all() override;
  PhaseTimes times() const override;
  std::vector<double> time_calls(const Call& call,
                                 const Plan& plan,
                                 const MachineWeights& weights,
                                 std::uint64_t timeout_ms,
                                 const TimedCalls& what) override;
  int device() const override { return wish_.card; }

 private:
  CardShare share_of_card(Link& link, std::uint64_t timeout_ms) const;
  int workers_of(const CardShare& share) const;
  cudaStream_t stream_of(const CallOrder& order) const;
  void launch(const Call& call,
              const Plan& plan,
              const MachineWeights& weights,
              std::uint64_t timeout_ms,
              cudaStream_t stream);

  const GpuKind& kind_;  // one of kGpuKinds
  std::unique_ptr<KernelSet> kernels_;
  CardWish wish_;
  CardShare share_;
  std::vector<TileRule> tiles_;  // of which this build has kernels
  Limits limits_;                // looks at tiles_: no copy of it outlives this machine
  std::unique_ptr<DeviceMemory> memory_;
  std::shared_ptr<Segment> times_;  // WorkerTimes by worker, of the last call
  cudaStream_t own_stream_ = nullptr;
  cudaEvent_t last_call_ = nullptr;  // recorded behind the last call that no graph captured
  cudaStream_t last_stream_ = nullptr;
  bool has_called_ = false;
};

}  // namespace megamoe
