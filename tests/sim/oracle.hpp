#pragma once

#include <cstdint>
#include <vector>

#include "base/check.hpp"
#include "protocol/call.hpp"
#include "protocol/machine.hpp"
#include "sim/expectation.hpp"
#include "sim/rank_memory.hpp"
#include "sim/scenario.hpp"
#include "sim/scheduler.hpp"

namespace megamoe::sim {

/// Knows all of every rank's memory and what each call must do, and looks at every verb: the first
/// one that breaks an invariant ends the run with a sentence.
class Oracle {
 public:
  Oracle(const Scenario& scenario, const RankMemory& memory, Scheduler& scheduler);

  void begin_call(const Call& call, int number, std::uint64_t first_epoch);
  /// All of the rank's roles have ended, and none gave up.
  void end_call(int rank, const std::vector<Bfloat16>& output) const;
  const Expectation& expectation(int number) const {
    return expectations_[static_cast<std::size_t>(number)];
  }

  /// A counter of `rank` was added to, cleared or announced; `now` is its new value.
  template <class C>
  void published(int /*rank*/, const C* /*counter*/, typename C::Value /*now*/) const {}
  void published(int rank, const ArrivedRows* counter, std::uint32_t now) const;
  void published(int rank, const ReadyBlocks* counter, std::uint32_t now) const;
  void published(int rank, const FinishedBlocks* counter, std::uint32_t now) const;
  void published(int rank, const WorkersArrived* counter, std::uint32_t now) const;
  void published(int rank, const RolesJoined* counter, std::uint32_t now) const;
  void published(int rank, const Gate* counter, std::uint64_t now) const;
  void announced(int rank, const RankArrival* counter, std::uint64_t now);
  template <class C>
  void claimed(int /*rank*/, const C* /*counter*/, typename C::Value /*now*/) const {}
  void claimed(int rank, const Sent* counter, std::uint64_t now) const;
  void added(const ReceivedSum* counter, std::uint64_t now) const;
  template <class C>
  void cleared(int rank, const C* counter) const {
    check_clear(rank, counter, sizeof *counter);
  }
  /// A plain write of a verb.
  void written(const void* place, std::size_t bytes) const;

  void pull_begun(int rank, const RowPull& pull);
  void pull_landed(int rank, const RowPull& pull);
  /// A row of linear 2's input is being settled; it is.
  void settle_begun(int rank, std::int64_t pool_row);
  void settle_landed(int rank, std::int64_t pool_row);
  /// One of the `lanes` that share a block's work has done its own and not told anyone yet; the
  /// last one completes the block.
  void lane_computed(int rank, const Block& block, int lanes);

 private:
  struct PoolState {
    int expert = 0;  ///< local
    int m = 0;
    int rows = 0;
    bool is_last = false;  ///< of its expert
    std::vector<bool> begun;
    int landed = 0;
    std::vector<bool> settling, settled;  ///< [row] begun, done
    int rows_settled = 0;
    std::vector<int> linear1, linear2;  ///< [n] lanes that are done
    int linear1_computed = 0;
    int linear2_computed = 0;
  };
  struct RankState {
    Call call;
    int number = 0;
    std::uint64_t first_epoch = 0;
    std::uint64_t announced = 0;  ///< the latest epoch that any peer was told
    const Expectation* expectation = nullptr;
    std::vector<PoolState> blocks;
    std::vector<std::vector<bool>> pulled;  ///< [source rank][pair]
  };
  /// A pull, told by the addresses that it was given.
  struct Journey {
    int source_rank, pair, row_in_block;
    PoolBlock block;
  };

  RankState& state(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }
  const RankState& state(int rank) const { return ranks_[static_cast<std::size_t>(rank)]; }
  template <class... Parts>
  void expect(bool holds, const Parts&... parts) const {
    if (!holds) scheduler_.fail(sentence(parts...));
  }
  std::uint64_t gate(int rank) const;
  /// Which barrier of its call the rank passed last, 0..3.
  std::uint64_t barriers_passed(int rank) const { return gate(rank) - state(rank).first_epoch; }
  std::uint32_t finished(const RankState& s, int place) const;
  /// The pool block that owns a ring place now: the first one whose linear 2 is not finished.
  PoolBlock owner(const RankState& s, int place) const;
  const PoolState& pool_block(const RankState& s, PoolBlock block) const;
  Journey journey_of(const RankState& s, const RowPull& pull) const;
  /// What `ready` may count of a pool block at most.
  static int ready_now(const RankState& s, const PoolState& pool);
  /// The block is the one that its rows say, and its input was there.
  void check_input(int rank, const Block& block) const;
  void check_counts(int rank) const;
  void check_all_computed() const;
  void check_clear(int rank, const void* counter, std::size_t bytes) const;
  void poison(const RankState& s, PoolBlock block) const;

  const Scenario& scenario_;
  const RankMemory& memory_;
  Scheduler& scheduler_;
  std::vector<Expectation> expectations_;  // [call]
  std::vector<RankState> ranks_;
};

}  // namespace megamoe::sim
