#include "megamoe/launch.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "base/check.hpp"
#include "megamoe/problem.hpp"
#include "runtime/launch.hpp"

namespace megamoe {
namespace {

/// The lower, the nearer to the root of the trouble: a killed process, then a rank that failed by
/// itself, then those that failed because another did.
int depth(const RankOutcome& outcome) {
  if (outcome.is_good) return 3;
  if (outcome.signal != 0) return 0;
  return outcome.code != ErrorCode::kRunFailed ? 1 : 2;
}

using Run = std::vector<Ending>(int, const LinkBody&);

LaunchResult launch(int ranks, const RankBody& body, Run* run) {
  require(ranks >= 1 && ranks <= kMaxRanks,
          ErrorCode::kInvalidArgument,
          "ranks is ",
          ranks,
          "; a group has 1 to ",
          kMaxRanks);
  LaunchResult result;
  for (Ending& ending :
       run(ranks, [&](std::shared_ptr<Link> link) { return body(Group(std::move(link))); })) {
    RankOutcome outcome;
    outcome.is_good = ending.is_good;
    outcome.code = ending.code;
    outcome.signal = ending.signal;
    (ending.is_good ? outcome.result : outcome.sentence) = std::move(ending.text);
    result.ranks.push_back(std::move(outcome));
  }
  return result;
}

}  // namespace

bool LaunchResult::is_good() const {
  return std::all_of(ranks.begin(), ranks.end(), [](const auto& rank) { return rank.is_good; });
}

const RankOutcome& LaunchResult::cause() const {
  MEGAMOE_CHECK(!is_good());
  return *std::min_element(
      ranks.begin(), ranks.end(), [](const auto& a, const auto& b) { return depth(a) < depth(b); });
}

std::string LaunchResult::explain() const {
  std::vector<const RankOutcome*> bad;
  for (const RankOutcome& rank : ranks)
    if (!rank.is_good) bad.push_back(&rank);
  std::stable_sort(
      bad.begin(), bad.end(), [](const auto* a, const auto* b) { return depth(*a) < depth(*b); });
  std::string lines;
  std::set<std::string> said;
  for (const RankOutcome* rank : bad)
    if (said.insert(rank->sentence).second) lines += (lines.empty() ? "" : "\n") + rank->sentence;
  return lines;
}

LaunchResult launch_processes(int ranks, const RankBody& body) {
  return launch(ranks, body, &run_in_processes);
}

LaunchResult launch_threads(int ranks, const RankBody& body) {
  return launch(ranks, body, &run_in_threads);
}

}  // namespace megamoe
