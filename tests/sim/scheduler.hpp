#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/fiber.hpp"
#include "sim/random.hpp"

namespace megamoe::sim {

/// How the next fiber is chosen.
enum class Style : std::uint8_t {
  kUniform,   ///< any that can run, at every turn
  kSticky,    ///< mostly the same one again: long runs of one fiber against all others
  kPriority,  ///< always the most urgent one, urgencies changing now and then: starves the others
};

/// Whose fiber it is; what a freeze selects by.
struct Tag {
  int rank = 0;
  int worker = 0;
  int role = 0;
};

/// From a turn on, the fibers that match never run again: a rank or worker that died.
struct Freeze {
  static constexpr int kAny = -1;
  std::uint64_t turn = ~std::uint64_t{0};
  int rank = kAny;
  int worker = kAny;
  int role = kAny;

  constexpr bool selects(const Tag& tag) const {
    return (rank == kAny || rank == tag.rank) && (worker == kAny || worker == tag.worker) &&
           (role == kAny || role == tag.role);
  }
};

/// One OS thread, many fibers, one of them running: the turn goes from one to the next at every
/// verb and every wait, chosen by a seed, so that a failure can be had again. A fiber that polls in
/// vain sleeps until one of the words that it looked at is written; when all sleep, nothing will
/// ever change but the clock, which then jumps: a deadlock is found exactly, and then reports
/// itself through the deadlines of the protocol's own waits.
class Scheduler {
 public:
  using Id = int;
  struct Options {
    std::uint64_t seed = 1;
    Style style = Style::kUniform;
    std::uint64_t jump_ms = 250;  ///< of the clock, when only time can change anything
    int jumps = 400;              ///< after which the run is given up as stuck
    Freeze freeze{};
  };
  enum class Ending : std::uint8_t {
    kDone,   ///< every fiber ended, or is frozen
    kStuck,  ///< some can never go on, whatever the clock says
    kFailed  ///< fail() was called
  };

  explicit Scheduler(const Options& options);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  /// Also from inside a fiber.
  Id spawn(const Tag& tag, std::function<void()> body);
  Ending run();

  // From inside a fiber.

  /// Others may run before the next line does.
  void turn();
  /// The fiber is about to read a word that it may come to wait for.
  void look(const void* address);
  /// A poll was in vain: goes on when one of the latest words looked at was written since.
  void pause();
  /// A word was written.
  void touched(const void* address);
  /// Goes on when somebody wakes it.
  void sleep();
  void wake(Id fiber);
  Id current() const { return current_; }
  /// Ends the run.
  [[noreturn]] void fail(const std::string& what);
  /// The fiber works for so long; all who poll see the time pass.
  void spend(std::uint64_t ms);

  std::uint64_t now_ms() const { return now_ms_; }
  Random& random() { return random_; }
  /// How often only time could change anything: 0 means that every wait was ended by another fiber.
  int jumps() const { return jumps_; }
  std::uint64_t turns() const { return turns_; }
  const std::string& failure() const { return failure_; }

 private:
  static constexpr int kWatched = 8;
  enum class State : std::uint8_t { kRunnable, kPaused, kAsleep, kFrozen, kEnded };
  struct Seat {
    Tag tag;
    std::unique_ptr<Fiber> fiber;
    State state = State::kRunnable;
    std::uint64_t urgency = 0;
    const void* watched[kWatched] = {};
    int next_watched = 0;
    bool is_woken = false;  ///< a watched word was written since the latest poll
  };

  Seat& seat(Id id) { return seats_[static_cast<std::size_t>(id)]; }
  Ending run_all();
  void set_state(Id id, State state);
  Id choose();
  /// Leaves the current fiber in its new state.
  void go_on(Place& from);
  void end_current();
  void freeze_selected();
  /// Lets all pollers poll once more; false when there are none.
  bool wake_pollers();
  bool jump();

  Options options_;
  Random random_;
  std::vector<Seat> seats_;
  std::vector<Id> runnable_;
  std::vector<std::unique_ptr<Fiber>> ended_;
  Place main_;
  Id current_ = -1;
  std::uint64_t turns_ = 0;
  std::uint64_t now_ms_ = 0;
  int jumps_ = 0;
  bool is_freezing_ = false;
  bool is_unwinding_ = false;
  std::string failure_;
};

}  // namespace megamoe::sim
