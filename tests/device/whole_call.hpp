#pragma once

#include <algorithm>
#include <cstdio>
#include <ostream>
#include <string>
#include <vector>

#include "end_to_end.hpp"
#include "gpu_test.hpp"
#include "stage_check.hpp"
#include "whole_reference.hpp"

// What every machine's whole calls are held to, stage by stage.
namespace megamoe::test {

// A layer and its tokens, and how the pool is cut.
struct CallCase {
  const char* name;
  int hidden, intermediate, experts, topk, tokens, block_m;
  int ranks = 1;
  bool has_biases = false;
  Activation activation = {};
  std::int64_t pool_rows = 0;  // 0: the full pool

  Problem problem() const {
    return {.ranks = ranks,
            .experts = experts,
            .topk = topk,
            .hidden = hidden,
            .intermediate = intermediate,
            .capacity = tokens + 3,
            .has_biases = has_biases,
            .activation = activation};
  }
  // Ranks have different numbers of tokens.
  std::vector<RandomInput> inputs() const {
    std::vector<RandomInput> all;
    for (int r = 0; r < ranks; ++r)
      all.push_back(
          random_input(problem(), std::max(0, tokens - 3 * r), 7 + static_cast<unsigned>(r)));
    return all;
  }
};

inline std::ostream& operator<<(std::ostream& out, const CallCase& c) {
  return out << c.name;
}

// Relative L2 of a stage against fp64 that was fed the machine's own codes, and of the whole layer.
// A code that flips because a sum was a little off is off by a sixteenth.
struct CallBounds {
  double activations, outputs, whole;
};

inline void expect_good_stages(const StageReport& report,
                               const CallCase& c,
                               int rank,
                               const CallBounds& bounds) {
  std::printf("  %-14s rank %d: linear 1 %.2e, linear 2 %.2e\n",
              c.name,
              rank,
              report.activations.relative(),
              report.outputs.relative());
  EXPECT_EQ(report.wrong_pool_bytes, 0);
  EXPECT_EQ(report.wrong_headers, 0);
  EXPECT_EQ(report.wrong_sums, 0);
  EXPECT_LT(report.activations.relative(), bounds.activations);
  EXPECT_LT(report.outputs.relative(), bounds.outputs);
}

// Each stage of a call agrees with fp64 that was fed the machine's own codes, the whole agrees with
// the contract, a second call on the same memory gives the same bytes, and every counter is back at
// zero. `forward()` is a call of all ranks; check_stages(rank, inputs) looks at what it left.
template <class Layer, class Forward, class CheckStages>
void expect_good_calls(Layer& layer,
                       const CallCase& c,
                       const RandomWeights& weights,
                       const CallBounds& bounds,
                       const Forward& forward,
                       const CheckStages& check_stages) {
  const std::vector<RandomInput> inputs = c.inputs();
  for (int r = 0; r < c.ranks; ++r)
    layer.set_input(r, inputs[static_cast<std::size_t>(r)]);
  layer.poison();
  forward();
  std::vector<std::vector<Bfloat16>> first;
  for (int r = 0; r < c.ranks; ++r) {
    SCOPED_TRACE("rank " + std::to_string(r));
    first.push_back(layer.output(r));
    if (c.pool_rows == 0) expect_good_stages(check_stages(r, inputs), c, r, bounds);
    const Distance whole = check_end_to_end(layer, r, inputs[static_cast<std::size_t>(r)], weights);
    std::printf("  %-14s rank %d: whole %.2e\n", c.name, r, whole.relative());
    EXPECT_LT(whole.relative(), bounds.whole);
  }
  layer.poison();
  forward();
  for (int r = 0; r < c.ranks; ++r) {
    EXPECT_TRUE(same_bits(layer.output(r), first[static_cast<std::size_t>(r)])) << "rank " << r;
    EXPECT_TRUE(layer.counters_are_zero(r)) << "rank " << r;
  }
  EXPECT_TRUE(layer.is_intact());
}

}  // namespace megamoe::test
