#pragma once

#include <array>
#include <atomic>
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
  const SymmetricMemory& memory() const { return *memory_; }
  const Workspace& workspace() const { return workspace_; }
  const Plan& plan() const { return plan_; }

  /// The plan of a call with so many tokens, from now on plan().
  const Plan& plan_for(int num_tokens);

  /// Throws Error(kRunFailed) unless a call may begin.
  void require_usable();
  /// Around the machine's part of a call: one that throws in between counts as abandoned.
  void begin_call();
  void end_call() { failure_.clear(); }
  /// Notes why a call was abandoned, and throws Error(kRunFailed) with the sentence.
  [[noreturn]] void fail_by_fault_record();

  /// Collective: brings every counter and epoch back to the start.
  void reset();

 private:
  Station(std::shared_ptr<Link> link, LayerOptions options);

  std::string configure(const Problem& problem);
  [[noreturn]] void fail(const std::string& why);
  void note_death(int rank);
  void depart();

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
  std::atomic_flag is_taken_;
  std::shared_ptr<void> watch_;  // last: its thread uses the rest
};

}  // namespace megamoe
