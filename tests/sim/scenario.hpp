#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "megamoe/problem.hpp"
#include "protocol/fault.hpp"
#include "protocol/ring.hpp"
#include "protocol/workspace.hpp"

namespace megamoe::sim {

/// What one rank brings to one call, and the plan that it chose by itself for it.
struct RankInput {
  int tokens = 0;
  std::vector<std::int64_t> ids;  ///< [tokens][topk]
  std::vector<float> weights;     ///< [tokens][topk]
  Refusal refusal;                ///< the host's
  Ring ring;
  int experts_per_wave = 1;
  int workers = 1;
};

/// How the text is stepped.
struct Layout {
  int lanes = 1;
  int pulls_in_flight = 1;
  int dispatch_teams = 1;
  int compute_teams = 1;
  bool settles = false;  ///< rows of linear 2's input, between the linears
};

/// A problem and several calls on one buffer, back to back.
struct Scenario {
  std::uint64_t seed = 0;
  Problem problem;
  PoolFormat format;
  std::int64_t pool_rows = kPoolGranule;
  Layout layout;
  std::vector<std::vector<RankInput>> calls;  ///< [call][rank]

  Workspace workspace() const { return Workspace::plan(problem, format, pool_rows); }
  std::string describe() const;
};

/// Bounds of a random scenario.
struct Extent {
  int ranks = 6;
  int capacity = 24;
  int workers = 3;
  int calls = 3;
  bool has_bad_ids = true;
};

/// Routing of every kind, all plans legal: experts not a power of two, duplicate and masked ids,
/// ranks with no tokens, everything on one expert, rings from a single block upward.
Scenario random_scenario(std::uint64_t seed, const Extent& extent, const Layout& layout);

/// The least ring that a plan may have (384 rows), one worker a rank, every row for one expert.
Scenario worst_skew(std::uint64_t seed, int block_m, const Layout& layout);

/// The plan's format: linear 1's row is the token's bytes, linear 2's one 64-bit tag a linear 1
/// block.
PoolFormat tagged_format(int hidden, int linear1_blocks);

}  // namespace megamoe::sim
