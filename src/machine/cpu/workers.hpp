#pragma once

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "machine/cpu/block_work.hpp"
#include "machine/cpu/rank_weights.hpp"
#include "machine/cpu/team.hpp"
#include "protocol/call.hpp"

namespace megamoe::cpu {

/// One rank's workers on this machine: two threads each, one a role, since with a small ring a pull
/// may have to wait for a block of the same worker (docs/decisions/0004). The threads live as long
/// as this; between calls they sleep.
class Workers {
 public:
  Workers(int num_workers, InstructionSet instruction_set);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  int num_workers() const { return num_workers_; }
  const TileKernel& kernel() const { return kernel_; }

  /// One call of this rank, collective over ranks. False when it was abandoned; the rank's fault
  /// record then says where.
  [[nodiscard]] bool run(const Call& call,
                         const RankWeights& weights,
                         BlockChannels channels,
                         std::uint64_t timeout_ms);

  /// Of the last call.
  const CallTimes& times() const { return times_; }

 private:
  enum class Role { kDispatch, kCompute };

  void start(int worker, Role role);
  void end();
  void live(int worker, Role role);
  bool play_or_stop_all(int worker, Role role);
  bool play(int worker, Role role);
  bool play_compute(Team& team, int worker);

  const int num_workers_;
  const TileKernel kernel_;

  // The call under way: written before the threads are woken, read by them.
  const Call* call_ = nullptr;
  const RankWeights* weights_ = nullptr;
  BlockChannels channels_;
  CallEnvironment environment_;
  std::vector<WorkerState> states_;
  std::vector<BlockScratch> scratch_;  ///< [worker]
  CallTimes times_;

  std::mutex mutex_;
  std::condition_variable wake_, done_;
  std::uint64_t calls_ = 0;  ///< begun so far; a thread that has played fewer has work
  int playing_ = 0;
  bool all_good_ = true;
  std::exception_ptr thrown_;  ///< what a role threw, for the caller of run()
  bool is_ending_ = false;
  std::vector<std::jthread> threads_;
};

}  // namespace megamoe::cpu
