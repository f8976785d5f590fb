#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "protocol/forward.hpp"
#include "sim/oracle.hpp"
#include "sim/rank_host.hpp"
#include "sim/rank_memory.hpp"
#include "sim/simulate.hpp"
#include "sim/tagged_layer.hpp"
#include "sim/team.hpp"

namespace megamoe::sim {

/// All ranks of a scenario on the simulated machine. A rank's last fiber to end a call does what
/// its host does between two, and starts the next one's fibers.
template <class M>
class Cluster {
 public:
  Cluster(const Scenario& scenario, const SimulationOptions& options)
      : scenario_(scenario),
        options_(options),
        memory_(scenario.workspace(), scenario.problem.ranks),
        scheduler_(options.scheduler),
        oracle_(scenario, memory_, scheduler_),
        world_{scheduler_, &oracle_, options.timeout_ms, options.delays_writes, {}} {
    for (int rank = 0; rank < scenario.problem.ranks; ++rank)
      ranks_.emplace_back(RankHost(scenario, memory_, rank));
  }

  Outcome run() {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
      start_call(static_cast<int>(rank), 0);
    Outcome outcome;
    outcome.ending = scheduler_.run();
    outcome.failure = scheduler_.failure();
    outcome.jumps = scheduler_.jumps();
    outcome.turns = scheduler_.turns();
    outcome.now_ms = scheduler_.now_ms();
    outcome.departures = world_.departures;
    for (const Rank& rank : ranks_) {
      const Call& call = rank.host.call();
      const Workspace& w = call.workspace;
      outcome.ranks.push_back({rank.calls_done,
                               Abort::of(call.local(w.abort)->value),
                               static_cast<int>(call.local(w.fault_claims)->value),
                               *call.local(w.fault)});
    }
    return outcome;
  }

 private:
  /// One call of one rank: its workers, teams and lanes.
  struct Running {
    std::vector<std::unique_ptr<WorkerState>> workers;
    std::vector<std::unique_ptr<TeamState>> teams;
    std::vector<std::unique_ptr<M>> lanes;
    std::size_t lanes_left = 0;
    bool has_given_up = false;
  };
  struct Rank {
    explicit Rank(RankHost a_host) : host(std::move(a_host)) {}
    RankHost host;
    int calls_done = 0;
    std::vector<std::unique_ptr<Running>> calls;
  };

  Rank& rank_at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }

  void start_call(int rank, int number) {
    RankHost& host = rank_at(rank).host;
    const Call& call = host.begin(number);
    oracle_.begin_call(call, number, host.first_epoch());
    rank_at(rank).calls.push_back(std::make_unique<Running>());
    Running& running = *rank_at(rank).calls.back();
    const Layout& layout = scenario_.layout;
    for (int worker = 0; worker < host.input().workers; ++worker) {
      running.workers.push_back(std::make_unique<WorkerState>(
          scheduler_, scenario_.problem.experts, layout.dispatch_teams * M::kLanes));
      for (int team = 0; team < layout.dispatch_teams; ++team)
        add_team(rank, Role::kDispatch, worker, team);
      for (int team = 0; team < layout.compute_teams; ++team)
        add_team(rank, Role::kCompute, worker, team);
    }
    running.lanes_left = running.lanes.size();
    for (const auto& lane : running.lanes)
      scheduler_.spawn({rank, lane->worker(), static_cast<int>(lane->role())},
                       [this, rank, m = lane.get()] { live(rank, *m); });
  }

  void add_team(int rank, Role role, int worker, int team) {
    Running& running = *rank_at(rank).calls.back();
    const Layout& layout = scenario_.layout;
    const Post post{
        .role = role,
        .worker = worker,
        .num_workers = rank_at(rank).host.input().workers,
        .team = team,
        .num_teams = role == Role::kDispatch ? layout.dispatch_teams : layout.compute_teams,
        .teams_of_worker = layout.dispatch_teams + layout.compute_teams,
        .first_epoch = rank_at(rank).host.first_epoch()};
    running.teams.push_back(std::make_unique<TeamState>(scheduler_, M::kLanes));
    for (int lane = 0; lane < M::kLanes; ++lane)
      running.lanes.push_back(std::make_unique<M>(world_,
                                                  rank_at(rank).host.call(),
                                                  post,
                                                  *running.workers.back(),
                                                  *running.teams.back(),
                                                  lane));
  }

  /// Rank by rank: each leader enters its first call long after the rank before it has arrived.
  void come_late(int rank, const M& m) {
    if (m.role() != Role::kDispatch || m.worker() != 0 || m.team() != 0 || m.lane() != 0) return;
    const Call& call = rank_at(rank).host.call();
    while (rank > 0 && call.local(call.workspace.arrival)[rank - 1].value == 0)
      scheduler_.turn();
    for (std::uint64_t ms = 0; rank > 0 && ms < options_.late_ms; ms += kLateStepMs) {
      scheduler_.spend(kLateStepMs);
      scheduler_.turn();
    }
  }

  void live(int rank, M& m) {
    const Call& call = rank_at(rank).host.call();
    if (options_.late_ms > 0) come_late(rank, m);
    const bool is_done = m.role() == Role::kDispatch
                             ? dispatch(m, call)
                             : compute(m, call, [&] { return compute_blocks(m, call); });
    Running& running = *rank_at(rank).calls.back();
    if (is_done && m.has_unreleased_writes())
      scheduler_.fail(sentence("rank ", rank, " ends a call with writes that nothing released"));
    running.has_given_up |= !is_done;
    if (--running.lanes_left > 0 || running.has_given_up) return;
    oracle_.end_call(rank, rank_at(rank).host.output());
    const int next = ++rank_at(rank).calls_done;
    if (next < static_cast<int>(scenario_.calls.size())) start_call(rank, next);
  }

  bool compute_blocks(M& m, const Call& call) {
    const auto fail = [this](const std::string& what) { scheduler_.fail(what); };
    TaggedLayer layer(m, call, oracle_.expectation(rank_at(call.peers.rank).host.number()), fail);
    const auto work = [&](const Block& block) {
      layer.compute(block);
      if (m.rank() == options_.slow.rank && m.lane() == 0) scheduler_.spend(options_.slow.block_ms);
      oracle_.lane_computed(m.rank(), block, m.num_teams() * M::kLanes);
    };
    return m.num_teams() == 1 ? run_blocks(m, call, work) : share_blocks(m, call, work);
  }

  /// run_blocks for several teams that share each block's rows.
  template <class Work>
  bool share_blocks(M& m, const Call& call, Work work) {
    auto schedule = schedule_of(call, m.worker(), m.num_workers());
    int step = 0;
    for (Block block; schedule.next(block);) {
      if (!wait_for_input(m, call, block)) return false;
      work(block);
      if (!m.meet_compute_teams(++step)) return false;
      if (m.team() == 0) signal_output(m, call, block);
    }
    return true;
  }

  static constexpr std::uint64_t kLateStepMs = 50;

  const Scenario& scenario_;
  const SimulationOptions& options_;
  RankMemory memory_;
  Scheduler scheduler_;
  Oracle oracle_;
  World world_;
  std::vector<Rank> ranks_;
};

}  // namespace megamoe::sim
