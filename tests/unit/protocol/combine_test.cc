#include "protocol/combine.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "unit/protocol/routed_bench.hpp"

namespace megamoe {
namespace {

using sim::Bench;
using sim::Random;
using sim::Scenario;

TEST(ValidSlots, AreThoseThatNameAnExpert) {
  Problem p;
  p.experts = 4;
  p.topk = 32;
  std::vector<std::int64_t> ids(32, -1);
  EXPECT_EQ(valid_slots(ids.data(), p), 0U);
  ids[0] = 0;
  ids[5] = 3;
  ids[6] = 4;
  ids[7] = std::int64_t{1} << 32;  // its low half would be valid
  ids[31] = 1;
  EXPECT_EQ(valid_slots(ids.data(), p), (1U << 0) | (1U << 5) | (1U << 31));
}

TEST(SlotSum, AddsInOrderAndRoundsOnce) {
  // 256 + 1/2 + 1/2: one by one in bf16 it would stay 256; in fp32 it is 257, and ties to 256, up
  // to 258.
  const auto pack = [](float value) {
    Bfloat16x8 slot{};
    for (Bfloat16& v : slot.values)
      v = to_bfloat16(value);
    return slot;
  };
  SlotSum sum;
  for (const float value : {256.0F, 0.5F, 0.5F, 0.5F})
    sum.add(pack(value));
  EXPECT_EQ(to_float(sum.rounded().values[3]), 258.0F);
  // Order: (1e30 - 1e30) + 1 is 1, (1 + 1e30) - 1e30 is 0.
  SlotSum first;
  for (const float value : {1e30F, -1e30F, 1.0F})
    first.add(pack(value));
  EXPECT_EQ(to_float(first.rounded().values[0]), 1.0F);
  SlotSum last;
  for (const float value : {1.0F, 1e30F, -1e30F})
    last.add(pack(value));
  EXPECT_EQ(to_float(last.rounded().values[0]), 0.0F);
  SlotSum negative_zero;
  negative_zero.add(pack(-0.0F));
  EXPECT_EQ(negative_zero.rounded().values[0].bits, 0) << "sums start from +0";
  EXPECT_EQ(SlotSum{}.rounded().values[7].bits, 0);
}

template <class M>
class CombineOn : public testing::Test {};
TYPED_TEST_SUITE(CombineOn, TestTeams);

/// Slots filled by hand, invalid ones with NaN.
TYPED_TEST(CombineOn, SumsValidSlotsAndNothingElse) {
  Random random(3);
  for (int round = 0; round < 12 && !this->HasFailure(); ++round) {
    Scenario scenario;
    scenario.problem.experts = 5;
    scenario.problem.topk = random.between(1, 7);
    scenario.problem.hidden = 32 * random.between(1, 4);
    scenario.problem.capacity = 9;
    scenario.format = sim::tagged_format(scenario.problem.hidden, 1);
    scenario.calls = {std::vector<sim::RankInput>(1)};
    const Problem& p = scenario.problem;
    sim::RankInput& input = scenario.calls[0][0];
    input.tokens = random.between(0, 9);
    for (int pair = 0; pair < input.tokens * p.topk; ++pair) {
      input.ids.push_back(random.between(-2, 6));
      input.weights.push_back(1);
    }
    Bench<TypeParam> bench(scenario);
    const Call& call = bench.call(0);
    std::vector<float> expected(static_cast<std::size_t>(input.tokens * p.hidden));
    for (int pair = 0; pair < input.tokens * p.topk; ++pair) {
      const std::int64_t id = input.ids[static_cast<std::size_t>(pair)];
      const bool is_valid = id >= 0 && id < p.experts;
      for (int channel = 0; channel < p.hidden; ++channel) {
        const Bfloat16 value = sim::slot_value(random.next(), channel);
        const int token = pair / p.topk;
        const int k = pair % p.topk;
        call.local(call.workspace.combine)[(k * p.capacity + token) * p.hidden + channel] =
            is_valid ? value : Bfloat16{0x7FC0};
        if (is_valid)
          expected[static_cast<std::size_t>(token * p.hidden + channel)] += to_float(value);
      }
    }
    const auto result = bench.run({.workers = random.between(1, 4),
                                   .teams = random.between(1, 3),
                                   .role = sim::Role::kCompute},
                                  random.next(),
                                  [](TypeParam& m, const Call& c) { combine(m, c); });
    ASSERT_TRUE(result.is_clean()) << result.failure;
    const std::vector<Bfloat16>& y = bench.host(0).output();
    for (std::size_t i = 0; i < y.size(); ++i) {
      const std::uint16_t bits = i < expected.size() ? to_bfloat16(expected[i]).bits : 0xA5A5;
      ASSERT_EQ(y[i].bits, bits) << "round " << round << ", value " << i;
    }
  }
}

}  // namespace
}  // namespace megamoe
