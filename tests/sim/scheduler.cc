#include "sim/scheduler.hpp"

#include <algorithm>
#include <utility>

namespace megamoe::sim {
namespace {

constexpr std::uint64_t kStickyTurns = 24;    // a fiber's average run
constexpr std::uint64_t kPriorityTurns = 48;  // between changes of urgency
constexpr std::uint64_t kMostTurns = 50'000'000;

/// Thrown where a fiber stands that has to leave its stack.
struct Unwound {};

}  // namespace

Scheduler::Scheduler(const Options& options) : options_(options), random_(mix(options.seed)) {}
Scheduler::~Scheduler() = default;

Scheduler::Id Scheduler::spawn(const Tag& tag, std::function<void()> body) {
  const Id id = static_cast<Id>(seats_.size());
  seats_.emplace_back();
  seats_.back().tag = tag;
  seats_.back().urgency = random_.next();
  seats_.back().fiber = std::make_unique<Fiber>([this, run_body = std::move(body)] {
    try {
      if (!is_unwinding_) run_body();
    } catch (const Unwound&) {  // the run is over, and this fiber's part in it
    }
    end_current();
  });
  if (is_freezing_ && options_.freeze.selects(tag))
    seats_.back().state = State::kFrozen;
  else
    runnable_.push_back(id);
  return id;
}

Scheduler::Ending Scheduler::run() {
  const Ending ending = run_all();
  // What the others hold on their stacks is given back.
  is_unwinding_ = true;
  for (Id id = 0; id < static_cast<Id>(seats_.size()); ++id) {
    if (seat(id).state == State::kEnded) continue;
    current_ = id;
    switch_places(main_, seat(id).fiber->place());
    ended_.clear();
  }
  return ending;
}

Scheduler::Ending Scheduler::run_all() {
  for (;;) {
    if (turns_ >= options_.freeze.turn) freeze_selected();
    if (!runnable_.empty()) go_on(main_);
    if (!failure_.empty()) return Ending::kFailed;
    if (!runnable_.empty()) continue;
    if (!jump()) break;
  }
  const bool is_done = std::all_of(seats_.begin(), seats_.end(), [](const Seat& s) {
    return s.state == State::kEnded || s.state == State::kFrozen;
  });
  return is_done ? Ending::kDone : Ending::kStuck;
}

bool Scheduler::wake_pollers() {
  bool has_any = false;
  for (Id id = 0; id < static_cast<Id>(seats_.size()); ++id) {
    if (seat(id).state != State::kPaused) continue;
    has_any = true;
    set_state(id, State::kRunnable);
  }
  return has_any;
}

bool Scheduler::jump() {
  if (jumps_ == options_.jumps || !wake_pollers()) return false;
  ++jumps_;
  now_ms_ += options_.jump_ms;
  return true;
}

void Scheduler::spend(std::uint64_t ms) {
  now_ms_ += ms;
  wake_pollers();
}

void Scheduler::set_state(Id id, State state) {
  Seat& s = seat(id);
  if (s.state == state || (s.state == State::kFrozen && state != State::kEnded)) return;
  if (s.state == State::kRunnable) {
    const auto at = std::find(runnable_.begin(), runnable_.end(), id);
    *at = runnable_.back();
    runnable_.pop_back();
  }
  s.state = state;
  if (state == State::kRunnable) runnable_.push_back(id);
}

void Scheduler::freeze_selected() {
  if (std::exchange(is_freezing_, true)) return;
  for (Id id = 0; id < static_cast<Id>(seats_.size()); ++id)
    if (seat(id).state != State::kEnded && options_.freeze.selects(seat(id).tag))
      set_state(id, State::kFrozen);
}

Scheduler::Id Scheduler::choose() {
  if (options_.style == Style::kPriority)
    return *std::max_element(runnable_.begin(), runnable_.end(), [this](Id a, Id b) {
      return seat(a).urgency < seat(b).urgency;
    });
  return runnable_[random_.below(runnable_.size())];
}

void Scheduler::turn() {
  if (++turns_ == kMostTurns) fail("still running after 50,000,000 turns");
  if (turns_ >= options_.freeze.turn) freeze_selected();
  Seat& s = seat(current_);
  const bool can_stay = s.state == State::kRunnable;
  if (options_.style == Style::kPriority && random_.one_in(kPriorityTurns))
    s.urgency = random_.next();
  if (options_.style == Style::kSticky && can_stay && !random_.one_in(kStickyTurns)) return;
  go_on(s.fiber->place());
}

void Scheduler::go_on(Place& from) {
  Place& next = runnable_.empty() ? main_ : seat(current_ = choose()).fiber->place();
  if (&next == &from) return;
  switch_places(from, next);
  ended_.clear();
  if (is_unwinding_ && &from != &main_) throw Unwound();
}

void Scheduler::end_current() {
  const Id self = current_;
  set_state(self, State::kEnded);
  ended_.push_back(std::move(seat(self).fiber));
  Fiber& ending = *ended_.back();
  const bool is_last = is_unwinding_ || runnable_.empty();
  ending.leave_for_ever(is_last ? main_ : seat(current_ = choose()).fiber->place());
}

void Scheduler::look(const void* address) {
  Seat& s = seat(current_);
  s.watched[s.next_watched++ % kWatched] = address;
}

void Scheduler::pause() {
  Seat& s = seat(current_);
  if (!std::exchange(s.is_woken, false)) {
    set_state(current_, State::kPaused);
    go_on(s.fiber->place());
    seat(current_).is_woken = false;
  } else {
    turn();
  }
}

void Scheduler::touched(const void* address) {
  for (Id id = 0; id < static_cast<Id>(seats_.size()); ++id) {
    Seat& s = seat(id);
    if (s.state == State::kEnded || s.state == State::kFrozen) continue;
    if (std::find(std::begin(s.watched), std::end(s.watched), address) == std::end(s.watched))
      continue;
    s.is_woken = true;
    if (s.state == State::kPaused) set_state(id, State::kRunnable);
  }
}

void Scheduler::sleep() {
  set_state(current_, State::kAsleep);
  go_on(seat(current_).fiber->place());
}

void Scheduler::wake(Id fiber) {
  if (seat(fiber).state == State::kAsleep) set_state(fiber, State::kRunnable);
}

void Scheduler::fail(const std::string& what) {
  if (failure_.empty()) failure_ = what;
  switch_places(seat(current_).fiber->place(), main_);
  throw Unwound();
}

}  // namespace megamoe::sim
