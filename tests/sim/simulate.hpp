#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "protocol/fault.hpp"
#include "sim/scenario.hpp"
#include "sim/scheduler.hpp"
#include "sim/team.hpp"

namespace megamoe::sim {

/// A rank whose blocks take long, by the simulated clock.
struct Slowness {
  int rank = -1;
  std::uint64_t block_ms = 0;
};

struct SimulationOptions {
  Scheduler::Options scheduler{};
  std::uint64_t timeout_ms = 1000;
  bool delays_writes = true;
  Slowness slow{};
  std::uint64_t late_ms =
      0;  ///< by which each rank enters its first call later than the one before
};

/// What became of one rank.
struct RankEnd {
  int calls_done = 0;  ///< that every role of the rank ended without giving up
  Abort abort;         ///< its abort word
  int fault_claims = 0;
  FaultRecord fault;
};

struct Outcome {
  Scheduler::Ending ending = Scheduler::Ending::kDone;
  std::string failure;  ///< the broken invariant, if any
  int jumps = 0;        ///< see Scheduler::jumps
  std::uint64_t turns = 0;
  std::uint64_t now_ms = 0;
  std::vector<RankEnd> ranks;
  std::vector<Departure> departures;

  /// Every call of every rank ended, none of them by waiting for the clock.
  bool is_clean(const Scenario& scenario) const;
  std::string describe() const;
};

/// Runs all calls of all ranks in one seeded interleaving; ranks begin their next call as soon as
/// their own roles have ended. The scenario's layout says which instance of Team it takes.
Outcome simulate(const Scenario& scenario, const SimulationOptions& options);

/// The layouts that simulate() has an instance for: lanes and pulls in flight.
inline constexpr Layout kLayouts[] = {
    {.lanes = 1, .pulls_in_flight = 1},
    {.lanes = 1, .pulls_in_flight = 4, .dispatch_teams = 2},
    {.lanes = 3, .pulls_in_flight = 2, .dispatch_teams = 2, .compute_teams = 2},
    {.lanes = 32, .pulls_in_flight = 3, .dispatch_teams = 2},
};
/// Either machine with each of them.
constexpr Layout settling(Layout layout) {
  layout.settles = true;
  return layout;
}

}  // namespace megamoe::sim
