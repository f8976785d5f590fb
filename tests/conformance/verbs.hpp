#pragma once

#include <gtest/gtest.h>

#include "conformance/fixtures.hpp"
#include "protocol/fault.hpp"
#include "protocol/machine.hpp"

// The suite that every machine passes: what protocol/machine.hpp promises of each verb.

namespace megamoe::conformance {

inline constexpr int kRanks = 3;
inline constexpr int kWorkers = 2;
inline constexpr int kHidden = 64;

template <class F>
class Verbs : public testing::Test {
 public:
  Verbs() {
    Problem& p = scenario_.problem;
    p.ranks = kRanks;
    p.experts = 6;
    p.topk = 4;
    p.hidden = kHidden;
    p.capacity = 5;
    scenario_.seed = 77;
    scenario_.format = F::format(kHidden);
    scenario_.calls = {std::vector<sim::RankInput>(kRanks)};
    for (sim::RankInput& input : scenario_.calls[0]) {
      input.tokens = p.capacity;
      for (int pair = 0; pair < p.capacity * p.topk; ++pair) {
        input.ids.push_back(pair % p.experts);
        input.weights.push_back(static_cast<float>(pair) / 8);
      }
    }
  }

  /// Everybody's crew.
  static sim::Crew everyone() {
    return {.ranks = {0, 1, 2}, .workers = kWorkers, .teams = F::kMostTeams};
  }

  /// `test(machine)` on fresh memory, several times: other interleavings, by seed or by chance.
  template <class Test>
  void repeat(Test test) {
    for (std::uint64_t seed = 1; seed <= 4 && !this->HasFailure(); ++seed) {
      F machine(scenario_, seed);
      test(machine);
    }
  }

 protected:
  sim::Scenario scenario_;
};

/// Waits until a word is at least `least`; false, after failing the test, when it never is.
template <class M, class C>
bool await(M& m, const C* counter, std::uint64_t least, int rank) {
  const bool has_come = wait_until(m, {WaitFor::kRank, 1, rank}, [&] {
    return Observation{m.observe(counter), least};
  });
  EXPECT_TRUE(has_come) << "waited in vain for " << least;
  return has_come;
}

using Machines = testing::Types<CpuFixture, SimFixture<1, 1>, SimFixture<3, 2>, SimFixture<32, 3>>;

}  // namespace megamoe::conformance
