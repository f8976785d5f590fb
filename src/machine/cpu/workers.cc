#include "machine/cpu/workers.hpp"

#include <atomic>
#include <exception>
#include <utility>

#include "base/check.hpp"
#include "protocol/forward.hpp"

namespace megamoe::cpu {

Workers::Workers(int num_workers, InstructionSet instruction_set)
    : num_workers_(num_workers),
      kernel_(instruction_set),
      states_(static_cast<std::size_t>(num_workers)),
      scratch_(static_cast<std::size_t>(num_workers)) {
  threads_.reserve(2 * static_cast<std::size_t>(num_workers));
  for (int worker = 0; worker < num_workers; ++worker) {
    for (const Role role : {Role::kDispatch, Role::kCompute})
      start(worker, role);
  }
}

Workers::~Workers() {
  end();
}

/// Those that run already must be sent away before what is thrown leaves the constructor, which
/// waits for their ends.
void Workers::start(int worker, Role role) {
  try {
    threads_.emplace_back([this, worker, role] { live(worker, role); });
  } catch (const std::exception& error) {
    end();
    throw Error(ErrorCode::kRunFailed,
                sentence("thread ",
                         threads_.size() + 1,
                         " of the ",
                         2 * num_workers_,
                         " that ",
                         num_workers_,
                         " workers take could not be started: ",
                         error.what()));
  }
}

void Workers::end() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  wake_.notify_all();
}

bool Workers::run(const Call& call,
                  const RankWeights& weights,
                  BlockChannels channels,
                  std::uint64_t timeout_ms) {
  times_ = {.start = monotonic_ns()};
  call_ = &call;
  weights_ = &weights;
  channels_ = channels;
  const std::atomic_ref gate(call.local(call.workspace.gate)->value);
  environment_ = {.first_epoch = gate.load(std::memory_order_acquire),
                  .timeout_ms = timeout_ms,
                  .kernel = &kernel_,
                  .times = &times_};
  for (WorkerState& state : states_) {
    state.role_counts.assign(static_cast<std::size_t>(call.problem.experts), 0);
    state.roles_joined = {};
  }

  std::unique_lock lock(mutex_);
  playing_ = static_cast<int>(threads_.size());
  all_good_ = true;
  ++calls_;
  wake_.notify_all();
  done_.wait(lock, [this] { return playing_ == 0; });  // bounded: every wait of a role is
  times_.end = monotonic_ns();
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
  return all_good_;
}

void Workers::live(int worker, Role role) {
  std::uint64_t played = 0;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [&] { return is_ending_ || calls_ > played; });
      if (is_ending_) return;
      ++played;
    }
    const bool good = play_or_stop_all(worker, role);
    const std::lock_guard lock(mutex_);
    all_good_ = all_good_ && good;
    if (--playing_ == 0) done_.notify_one();
  }
}

bool Workers::play_or_stop_all(int worker, Role role) {
  try {
    return play(worker, role);
  } catch (...) {
    Team::tell_all(*call_, {AbortReason::kStopped, call_->peers.rank});
    const std::lock_guard lock(mutex_);
    thrown_ = std::current_exception();
    return false;
  }
}

bool Workers::play(int worker, Role role) {
  Team team(
      *call_, environment_, {worker, num_workers_}, states_[static_cast<std::size_t>(worker)]);
  return role == Role::kDispatch ? dispatch(team, *call_) : play_compute(team, worker);
}

bool Workers::play_compute(Team& team, int worker) {
  BlockWork work(*call_, kernel_, *weights_, channels_, scratch_[static_cast<std::size_t>(worker)]);
  return compute(team, *call_, [&] {
    return run_blocks(team, *call_, [&](const Block& block) { work.run(team, block); });
  });
}

}  // namespace megamoe::cpu
