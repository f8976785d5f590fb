#include "sim/scenario.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>

#include "sim/random.hpp"

namespace megamoe::sim {
namespace {

constexpr int kMostLinear1Blocks = 5;

enum class Routing : std::uint8_t { kUniform, kSkewed, kOneExpert, kFewExperts };

/// Draws expert ids of one call.
class IdSource {
 public:
  IdSource(Random& random, const Problem& problem, bool has_bad_ids)
      : random_(random),
        problem_(problem),
        routing_(random.pick(kRoutings)),
        hot_(random.below(static_cast<std::uint64_t>(problem.experts))),
        masked_one_in_(random.pick({2, 5, 1000})),
        bad_one_in_(has_bad_ids && random.one_in(6) ? 7 : 0) {}

  std::int64_t next() {
    if (random_.one_in(masked_one_in_)) return random_.one_in(2) ? -1 : -7'000'000'000;
    const auto experts = static_cast<std::uint64_t>(problem_.experts);
    if (bad_one_in_ != 0 && random_.one_in(bad_one_in_))
      return problem_.experts + static_cast<std::int64_t>(
                                    random_.one_in(2) ? 0 : random_.below(std::uint64_t{1} << 40));
    switch (routing_) {
      case Routing::kOneExpert: return static_cast<std::int64_t>(hot_);
      case Routing::kFewExperts:
        return static_cast<std::int64_t>((hot_ + random_.below(2)) % experts);
      case Routing::kSkewed:
        return static_cast<std::int64_t>(std::min(random_.below(experts), random_.below(experts)));
      case Routing::kUniform: break;
    }
    return static_cast<std::int64_t>(random_.below(experts));
  }

 private:
  static constexpr Routing kRoutings[] = {Routing::kUniform,
                                          Routing::kUniform,
                                          Routing::kSkewed,
                                          Routing::kOneExpert,
                                          Routing::kFewExperts};

  Random& random_;
  const Problem& problem_;
  Routing routing_;
  std::uint64_t hot_;
  std::uint64_t masked_one_in_;
  std::uint64_t bad_one_in_;
};

Problem random_problem(Random& random, const Extent& extent) {
  Problem p;
  p.ranks = random.between(1, extent.ranks);
  p.experts = p.ranks * random.between(1, 5);
  p.topk = random.between(1, 10);
  p.hidden = random.pick({32, 64, 96});
  p.capacity = random.between(1, extent.capacity);
  return p;
}

int settled_rows(const Layout& layout, int block_m) {
  return layout.settles ? block_m : 0;
}

Ring random_ring(Random& random, const Scenario& scenario) {
  const std::int64_t pool_rows = scenario.pool_rows;
  Ring ring;
  ring.block_m = random.pick({8, 8, 16, 32, 64, 96, 128, 192});
  const int most = static_cast<int>(pool_rows) / ring.block_m;
  ring.blocks = random.one_in(3) ? most : random.between(1, std::min(most, 4));
  ring.linear1_blocks = random.between(1, kMostLinear1Blocks);
  ring.linear2_blocks = scenario.problem.hidden / random.pick({8, 16, 32});
  ring.settled_rows = settled_rows(scenario.layout, ring.block_m);
  return ring;
}

void fill_routing(Random& random, IdSource& ids, const Problem& problem, RankInput& input) {
  for (int pair = 0; pair < input.tokens * problem.topk; ++pair) {
    input.ids.push_back(ids.next());
    const bool is_masked = input.ids.back() < 0;
    const float weight = static_cast<float>(random.between(1, 4096)) / 4096.0F;
    input.weights.push_back(is_masked ? std::numeric_limits<float>::quiet_NaN() : weight);
  }
}

}  // namespace

PoolFormat tagged_format(int hidden, int linear1_blocks) {
  return {.linear1_row_bytes = static_cast<std::uint32_t>(hidden),
          .linear1_scale_bytes = static_cast<std::uint32_t>(hidden / kScaleGroup),
          .linear2_row_bytes = static_cast<std::uint32_t>(linear1_blocks) * 8,
          .linear2_scale_bytes = 0};
}

Scenario random_scenario(std::uint64_t seed, const Extent& extent, const Layout& layout) {
  Random random(mix(seed) ^ 0x5CE4A810U);
  Scenario s;
  s.seed = seed;
  s.layout = layout;
  s.problem = random_problem(random, extent);
  s.format = tagged_format(s.problem.hidden, kMostLinear1Blocks);
  s.pool_rows = kPoolGranule * random.between(1, 2);
  const int calls = random.between(1, extent.calls);
  for (int call = 0; call < calls; ++call) {
    IdSource ids(random, s.problem, extent.has_bad_ids);
    std::vector<RankInput> inputs(static_cast<std::size_t>(s.problem.ranks));
    for (RankInput& input : inputs) {
      input.tokens = random.one_in(4) ? 0 : random.between(0, s.problem.capacity);
      input.ring = random_ring(random, s);
      input.experts_per_wave = random.between(1, s.problem.experts_per_rank());
      input.workers = random.between(1, extent.workers);
      fill_routing(random, ids, s.problem, input);
    }
    s.calls.push_back(std::move(inputs));
  }
  return s;
}

Scenario worst_skew(std::uint64_t seed, int block_m, const Layout& layout) {
  Random random(mix(seed) ^ 0x3E157U);
  Scenario s;
  s.seed = seed;
  s.layout = layout;
  s.problem.ranks = 3;
  s.problem.experts = 6;
  s.problem.topk = 6;
  s.problem.capacity = 64;
  s.format = tagged_format(s.problem.hidden, kMostLinear1Blocks);
  s.pool_rows = kPoolGranule;
  const auto hot = static_cast<std::int64_t>(random.below(6));
  std::vector<RankInput> inputs(3);
  for (RankInput& input : inputs) {
    input.tokens = s.problem.capacity;
    input.ring = {.blocks = kPoolGranule / block_m,
                  .block_m = block_m,
                  .linear1_blocks = random.between(1, 3),
                  .linear2_blocks = 2,
                  .settled_rows = settled_rows(layout, block_m)};
    input.ids.assign(static_cast<std::size_t>(s.problem.pairs()), hot);
    input.weights.assign(static_cast<std::size_t>(s.problem.pairs()), 0.25F);
  }
  s.calls.push_back(std::move(inputs));
  return s;
}

std::string Scenario::describe() const {
  std::ostringstream out;
  out << "scenario seed " << seed << ": R " << problem.ranks << ", E " << problem.experts << ", K "
      << problem.topk << ", H " << problem.hidden << ", C " << problem.capacity << ", pool "
      << pool_rows << " rows, lanes " << layout.lanes << ", pulls " << layout.pulls_in_flight
      << ", teams " << layout.dispatch_teams << "+" << layout.compute_teams
      << (layout.settles ? ", settling" : "") << ", calls " << calls.size();
  for (const auto& inputs : calls) {
    out << " |";
    for (const RankInput& input : inputs)
      out << " [T " << input.tokens << ", W " << input.workers << ", block_m " << input.ring.block_m
          << " x " << input.ring.blocks << ", n " << input.ring.linear1_blocks << "/"
          << input.ring.linear2_blocks << ", wave " << input.experts_per_wave << "]";
  }
  return out.str();
}

}  // namespace megamoe::sim
