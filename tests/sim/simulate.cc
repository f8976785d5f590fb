#include "sim/simulate.hpp"

#include <sstream>

#include "base/check.hpp"
#include "sim/cluster.hpp"
#include "sim/settling_team.hpp"

namespace megamoe::sim {
namespace {

const char* name_of(WaitFor what) {
  switch (what) {
    case WaitFor::kNothing: return "nothing";
    case WaitFor::kWorkers: return "workers at barrier";
    case WaitFor::kRank: return "a rank at barrier";
    case WaitFor::kGate: return "gate";
    case WaitFor::kRows: return "rows of pool block";
    case WaitFor::kLinear1: return "linear 1 of pool block";
    case WaitFor::kRingPlace: return "the ring place of pool block";
    case WaitFor::kRoles: return "roles at part";
    case WaitFor::kPipeline: return "pipeline step";
  }
  return "something unknown";
}

template <template <int, int> class TeamOf>
Outcome simulate_on(const Scenario& scenario, const SimulationOptions& options) {
  const Layout& layout = scenario.layout;
  if (layout.lanes == 1 && layout.pulls_in_flight == 1)
    return Cluster<TeamOf<1, 1>>(scenario, options).run();
  if (layout.lanes == 1 && layout.pulls_in_flight == 4)
    return Cluster<TeamOf<1, 4>>(scenario, options).run();
  if (layout.lanes == 3 && layout.pulls_in_flight == 2)
    return Cluster<TeamOf<3, 2>>(scenario, options).run();
  if (layout.lanes == 32 && layout.pulls_in_flight == 3)
    return Cluster<TeamOf<32, 3>>(scenario, options).run();
  throw Error(ErrorCode::kInvalidArgument,
              sentence("no instance has ",
                       layout.lanes,
                       " lanes and ",
                       layout.pulls_in_flight,
                       " pulls in flight; kLayouts lists those there are"));
}

}  // namespace

bool Outcome::is_clean(const Scenario& scenario) const {
  bool is_every_call_done = true;
  for (const RankEnd& rank : ranks)
    is_every_call_done =
        is_every_call_done && rank.calls_done == static_cast<int>(scenario.calls.size());
  return ending == Scheduler::Ending::kDone && failure.empty() && is_every_call_done &&
         jumps == 0 && departures.empty();
}

std::string Outcome::describe() const {
  std::ostringstream out;
  if (!failure.empty()) out << failure << '\n';
  if (ending == Scheduler::Ending::kStuck) out << "stuck: some lanes can never go on\n";
  if (jumps > 0) out << "deadlock: only time could go on, " << jumps << " times\n";
  for (const Departure& d : departures)
    out << "  rank " << d.rank << ", worker " << d.worker << ", "
        << (d.role == Role::kDispatch ? "dispatch" : "compute") << " waited for "
        << name_of(d.wait.what) << ' ' << d.wait.subject << " of rank " << d.wait.awaited_rank
        << ": seen " << d.observation.seen << ", expected " << d.observation.expected << '\n';
  return out.str();
}

Outcome simulate(const Scenario& scenario, const SimulationOptions& options) {
  return scenario.layout.settles ? simulate_on<SettlingTeam>(scenario, options)
                                 : simulate_on<Team>(scenario, options);
}

}  // namespace megamoe::sim
