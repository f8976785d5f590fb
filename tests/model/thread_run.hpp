#pragma once

#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "machine/cpu/team.hpp"
#include "protocol/forward.hpp"
#include "sim/end_of_call.hpp"
#include "sim/expectation.hpp"
#include "sim/rank_host.hpp"
#include "sim/rank_memory.hpp"
#include "sim/tagged_layer.hpp"

namespace megamoe::model {

/// The CPU machine's verbs, but for the row's format: its bytes as they come.
class PlainTeam : public cpu::Team {
 public:
  PlainTeam(const Call& call,
            const cpu::CallEnvironment& environment,
            cpu::Position position,
            cpu::WorkerState& worker)
      : cpu::Team(call, environment, position, worker), hidden_(call.problem.hidden) {}

  void begin_pull(const RowPull& pull) {
    const auto bytes = static_cast<std::size_t>(hidden_);
    std::memcpy(pull.pool_row, pull.codes.raw(), bytes);
    std::memcpy(pull.pool_scales, pull.scales.raw(), bytes / kScaleGroup);
    *pull.pool_weight = *pull.weight.raw();
  }

 private:
  int hidden_;
};
static_assert(Machine<PlainTeam>);

/// All calls of all ranks of a scenario on real threads, two a worker; ranks meet nowhere but in
/// the protocol's own barriers.
class ThreadRun {
 public:
  ThreadRun(const sim::Scenario& scenario, std::uint64_t timeout_ms)
      : scenario_(scenario),
        timeout_ms_(timeout_ms),
        memory_(scenario.workspace(), scenario.problem.ranks) {
    for (int call = 0; call < static_cast<int>(scenario.calls.size()); ++call)
      expectations_.emplace_back(scenario, call);
    for (int rank = 0; rank < scenario.problem.ranks; ++rank)
      hosts_.push_back(std::make_unique<sim::RankHost>(scenario, memory_, rank));
  }

  /// Runs these ranks; the others never arrive.
  void run(const std::vector<int>& ranks) {
    std::vector<std::thread> threads;
    for (const int rank : ranks)
      threads.emplace_back([this, rank] { run_rank(rank); });
    for (std::thread& thread : threads)
      thread.join();
  }

  /// The first thing that was wrong; empty when nothing was.
  const std::string& failure() const { return failure_; }
  const Call& call(int rank) const { return hosts_[static_cast<std::size_t>(rank)]->call(); }

 private:
  void fail(const std::string& what) {
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) failure_ = what;
  }

  void run_rank(int rank) {
    sim::RankHost& host = *hosts_[static_cast<std::size_t>(rank)];
    for (int number = 0; number < static_cast<int>(scenario_.calls.size()); ++number) {
      const Call& call = host.begin(number);
      if (!run_roles(host)) return fail(sentence("rank ", rank, " gave up call ", number));
      const std::string wrong = sim::wrong_result(
          call, expectations_[static_cast<std::size_t>(number)], host.first_epoch(), host.output());
      if (!wrong.empty()) return fail(wrong);
    }
  }

  /// True when every role of every worker ended its call.
  bool run_roles(const sim::RankHost& host) {
    const int num_workers = host.input().workers;
    std::vector<cpu::WorkerState> workers(static_cast<std::size_t>(num_workers));
    cpu::CallTimes times;
    const cpu::CallEnvironment environment{.first_epoch = host.first_epoch(),
                                           .timeout_ms = timeout_ms_,
                                           .kernel = nullptr,
                                           .times = &times};
    std::vector<int> has_ended(static_cast<std::size_t>(2 * num_workers));
    std::vector<std::thread> roles;
    for (int worker = 0; worker < num_workers; ++worker) {
      cpu::WorkerState& state = workers[static_cast<std::size_t>(worker)];
      state.role_counts.resize(static_cast<std::size_t>(scenario_.problem.experts));
      const auto play = [this, &host, &environment, &state, worker, num_workers](auto role,
                                                                                 int& ended) {
        PlainTeam m(host.call(), environment, {worker, num_workers}, state);
        ended = (this->*role)(m, host) ? 1 : 0;
      };
      int& dispatched = has_ended[static_cast<std::size_t>(2 * worker)];
      int& computed = has_ended[static_cast<std::size_t>(2 * worker + 1)];
      roles.emplace_back([play, &dispatched] { play(&ThreadRun::run_dispatch, dispatched); });
      roles.emplace_back([play, &computed] { play(&ThreadRun::run_compute, computed); });
    }
    for (std::thread& role : roles)
      role.join();
    return std::find(has_ended.begin(), has_ended.end(), 0) == has_ended.end();
  }

  bool run_dispatch(PlainTeam& m, const sim::RankHost& host) { return dispatch(m, host.call()); }

  bool run_compute(PlainTeam& m, const sim::RankHost& host) {
    const Call& call = host.call();
    const auto report = [this](const std::string& what) { fail(what); };
    sim::TaggedLayer layer(m, call, expectations_[static_cast<std::size_t>(host.number())], report);
    return compute(m, call, [&] {
      return run_blocks(m, call, [&](const Block& block) { layer.compute(block); });
    });
  }

  const sim::Scenario& scenario_;
  std::uint64_t timeout_ms_;
  sim::RankMemory memory_;
  std::vector<sim::Expectation> expectations_;
  std::vector<std::unique_ptr<sim::RankHost>> hosts_;
  std::mutex mutex_;
  std::string failure_;
};

}  // namespace megamoe::model
