#pragma once

#include <memory>
#include <vector>

#include "sim/rank_host.hpp"
#include "sim/rank_memory.hpp"
#include "sim/scenario.hpp"
#include "sim/scheduler.hpp"
#include "sim/team.hpp"

namespace megamoe::sim {

/// How many workers of which ranks run a piece of the protocol, and in how many teams each.
struct Crew {
  std::vector<int> ranks = {0};
  int workers = 1;
  int teams = 1;
  Role role = Role::kDispatch;
};

/// A scenario's first call, ready for pieces of the protocol to be run on it one by one: every lane
/// of every team runs a body, interleaved by a seed. No oracle: tests look at memory.
template <class M>
class Bench {
 public:
  struct Result {
    Scheduler::Ending ending;
    std::string failure;
    int jumps;
    std::vector<Departure> departures;

    bool is_clean() const { return ending == Scheduler::Ending::kDone && jumps == 0; }
  };

  explicit Bench(const Scenario& scenario)
      : scenario_(scenario), memory_(scenario.workspace(), scenario.problem.ranks) {
    for (int rank = 0; rank < scenario.problem.ranks; ++rank) {
      hosts_.push_back(std::make_unique<RankHost>(scenario, memory_, rank));
      hosts_.back()->begin(0);
    }
  }

  RankHost& host(int rank) { return *hosts_[static_cast<std::size_t>(rank)]; }
  const Call& call(int rank) { return host(rank).call(); }

  /// `body(m, call)` on every lane.
  template <class Body>
  Result run(const Crew& crew, std::uint64_t seed, Body body) {
    Scheduler scheduler({.seed = seed});
    World world{scheduler, nullptr, 1000, true, {}};
    std::vector<std::unique_ptr<WorkerState>> workers;
    std::vector<std::unique_ptr<TeamState>> teams;
    std::vector<std::unique_ptr<M>> lanes;
    for (const int rank : crew.ranks) {
      for (int worker = 0; worker < crew.workers; ++worker) {
        workers.push_back(std::make_unique<WorkerState>(
            scheduler, scenario_.problem.experts, crew.teams * M::kLanes));
        for (int team = 0; team < crew.teams; ++team) {
          const Post post{.role = crew.role,
                          .worker = worker,
                          .num_workers = crew.workers,
                          .team = team,
                          .num_teams = crew.teams,
                          .teams_of_worker = crew.teams,
                          .first_epoch = host(rank).first_epoch()};
          teams.push_back(std::make_unique<TeamState>(scheduler, M::kLanes));
          for (int lane = 0; lane < M::kLanes; ++lane)
            lanes.push_back(
                std::make_unique<M>(world, call(rank), post, *workers.back(), *teams.back(), lane));
        }
      }
    }
    for (const auto& lane : lanes)
      scheduler.spawn({lane->rank(), lane->worker(), static_cast<int>(crew.role)},
                      [this, m = lane.get(), &body] {
                        body(*m, call(m->rank()));
                        // What follows is another piece, or the test: all writes have landed.
                        m->land_all_writes();
                      });
    const Scheduler::Ending ending = scheduler.run();
    return {ending, scheduler.failure(), scheduler.jumps(), world.departures};
  }

 private:
  const Scenario& scenario_;
  RankMemory memory_;
  std::vector<std::unique_ptr<RankHost>> hosts_;
};

}  // namespace megamoe::sim
