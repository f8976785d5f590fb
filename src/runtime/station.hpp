#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "megamoe/layer_options.hpp"
#include "megamoe/plan.hpp"
#include "plan/choose.hpp"
#include "protocol/call.hpp"
#include "runtime/group/link.hpp"
#include "runtime/memory/symmetric_memory.hpp"
#include "runtime/rank_machine.hpp"

namespace megamoe {

/// What a layer's options ask of its plan.
PlanRequest plan_request(const LayerOptions& options);

/// What a rank's layers of one problem share: symmetric memory, workers, the epochs of their calls,
/// and the state after a failed one. One call at a time.
class Station {
 public:
  /// Collective; the same Error on every rank when the ranks don't fit together.
  static std::shared_ptr<Station> open(const std::shared_ptr<Link>& link,
                                       const Problem& problem,
                                       const LayerOptions& options);
  /// Tells ranks that still expect this one in a call.
  ~Station();
  Station(const Station&) = delete;
  Station& operator=(const Station&) = delete;

  /// Holds the station for one call; a second one at once is refused.
  class Turn {
   public:
    explicit Turn(Station& station);
    ~Turn() { station_.is_taken_.clear(std::memory_order_release); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    Station& station_;
  };

  const Problem& problem() const { return plan_.problem; }
  int rank() const { return link_->rank(); }
  const LayerOptions& options() const { return options_; }
  RankMachine& machine() { return *machine_; }
  const std::string& machine_name() const { return machine_name_; }
  MemoryKind& kind() const { return machine_->memory(); }
  const SymmetricMemory& memory() const { return *memory_; }
  const Workspace& workspace() const { return workspace_; }
  const Plan& plan() const { return plan_; }

  /// The plan of a call with so many tokens, from now on plan(). `expected` of 0: the layer's own
  /// hint, else `num_tokens`.
  const Plan& plan_for(int num_tokens, int expected);

  /// Throws Error(kRunFailed) when a call has failed since the last reset().
  void require_usable() const;
  /// The same when a peer has died or left: looks into symmetric memory.
  void require_peers();
  /// Around the machine's part of a call's beginning: one that throws in between counts as
  /// abandoned, and the peers are told.
  void begin_call(const Call& call, const std::function<void()>& work);
  /// Tells every rank not to wait for this one in a call.
  void stop_peers();
  /// Of the calls that are over: throws Error(kRunFailed) for one that was abandoned, with its
  /// sentence, and Error(kInvalidArgument) for the first one that was refused since the last look.
  void require_good_calls();
  /// The last call that was begun.
  const Call& last_call() const { return last_call_; }

  /// Collective: brings every counter and epoch back to the start.
  void reset();

 private:
  Station(std::shared_ptr<Link> link, LayerOptions options);

  std::string configure(const Problem& problem);
  void settle_plan();
  [[noreturn]] void fail(const std::string& why);
  void note_death(int rank);
  void depart();

  [[noreturn]] void fail_by_fault_record();

  template <class T>
  T* local(Sym<T> place) const {
    return memory_->peers().local(place);
  }

  const std::shared_ptr<Link> link_;
  const LayerOptions options_;
  std::unique_ptr<RankMachine> machine_;
  std::string machine_name_;
  Plan plan_;
  Workspace workspace_;
  std::unique_ptr<SymmetricMemory> memory_;
  std::array<std::atomic<bool>, kMaxRanks> is_dead_{};
  std::string failure_;  // why no call may begin before reset()
  Call last_call_;
  std::atomic_flag is_taken_;
  std::shared_ptr<void> watch_;  // last: its thread uses the rest
};

}  // namespace megamoe
