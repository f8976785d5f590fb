// One layer's tokens, dealt to 1, 2, 4 and 8 ranks of the card, in every tile size, with every
// count from none to the capacity: a token's output is the same bits always, and agrees with fp64.
#include <ostream>

#include "device_layer.hpp"
#include "gpu_test.hpp"
#include "whole_reference.hpp"

namespace megamoe::test {
namespace {

constexpr int kCapacity = 12;
constexpr int kMostRanks = 8;

struct Shape {
  int hidden, intermediate;
};

// How many tokens a rank brings.
enum class Counts { kNone, kOne, kRagged, kFull };

int tokens_of(Counts counts, int rank) {
  switch (counts) {
    case Counts::kNone: return 0;
    case Counts::kOne: return 1;
    case Counts::kRagged: return (rank * 5 + 3) % (kCapacity + 1);
    case Counts::kFull: return kCapacity;
  }
  return 0;
}

class Sameness : public GpuTest,
                 public testing::WithParamInterface<std::tuple<sm90::Operands, Shape>> {
 protected:
  static constexpr std::uint64_t kSeed = 21;

  static sm90::Operands operands() { return std::get<0>(GetParam()); }
  static Problem problem(int ranks) {
    const Shape shape = std::get<1>(GetParam());
    return {.ranks = ranks,
            .experts = 16,
            .topk = 3,
            .hidden = shape.hidden,
            .intermediate = shape.intermediate,
            .capacity = ranks == 1 ? kMostRanks * kCapacity : kCapacity};
  }

  // All tokens on one rank: what every other run is held to.
  void make_standard() {
    weights_ = random_weights(problem(1), 5, kSeed);
    all_ = random_input(problem(1), kMostRanks * kCapacity, kSeed + 1);
    DeviceLayer layer(problem(1), weights_, {.operands = operands(), .block_m = 8});
    layer.set_input(0, all_);
    layer.poison();
    layer.forward(device_workers());
    standard_ = layer.output(0);
    const ReferenceOutput reference = reference_forward(problem(1), weights_.view(), view_of(all_));
    const Comparison comparison =
        compare(standard_, reference, problem(1).hidden, tolerance_of(operands()));
    EXPECT_TRUE(comparison.agrees()) << comparison.explain();
    std::printf("  whole layer: relative L2 %.2e\n", comparison.relative_l2);
  }

  void expect_the_same(DeviceLayer& layer, Counts counts) {
    const Problem& p = layer.problem();
    for (int r = 0; r < p.ranks; ++r)
      layer.set_input(r, part_of(all_, p, r * kCapacity, tokens_of(counts, r)));
    layer.poison();
    layer.forward(device_workers() / p.ranks);
    const auto hidden = static_cast<std::ptrdiff_t>(p.hidden);
    for (int r = 0; r < p.ranks; ++r) {
      const auto first = standard_.begin() + std::ptrdiff_t{r} * kCapacity * hidden;
      const std::vector<Bfloat16> wanted(first, first + tokens_of(counts, r) * hidden);
      EXPECT_TRUE(same_bits(layer.output(r), wanted)) << "rank " << r;
      EXPECT_TRUE(layer.counters_are_zero(r)) << "rank " << r;
    }
  }

  void expect_the_same_in_all_tiles(DeviceLayer& layer, Counts counts) {
    const int sizes = static_cast<int>(sm90::kBlockSizes.size());
    for (int i = 0; i < sizes; ++i) {
      // The last round mixes them: ranks need not agree.
      SCOPED_TRACE(testing::Message() << "block_m " << sm90::kBlockSizes[static_cast<unsigned>(i)]);
      for (int r = 0; r < layer.problem().ranks; ++r)
        layer.set_block_m(r, sm90::kBlockSizes[static_cast<unsigned>(i)]);
      expect_the_same(layer, counts);
    }
    for (int r = 0; r < layer.problem().ranks; ++r)
      layer.set_block_m(r, sm90::kBlockSizes[static_cast<unsigned>(r % sizes)]);
    expect_the_same(layer, counts);
  }

  RandomWeights weights_;
  RandomInput all_;
  std::vector<Bfloat16> standard_;
};

TEST_P(Sameness, ForAnyRanksTilesAndCounts) {
  make_standard();
  for (const int ranks : {1, 2, 4, kMostRanks}) {
    DeviceLayer layer(problem(ranks), weights_, {.operands = operands()});
    for (const Counts counts : {Counts::kFull, Counts::kRagged, Counts::kOne, Counts::kNone}) {
      SCOPED_TRACE(testing::Message() << ranks << " ranks, counts " << static_cast<int>(counts));
      expect_the_same_in_all_tiles(layer, counts);
    }
    EXPECT_TRUE(layer.is_intact());
  }
}

// The least ring there is, whose places are used again and again, and waves of one expert.
TEST_P(Sameness, ForTheLeastRingAndNarrowWaves) {
  make_standard();
  for (const int experts_per_wave : {1, 3, 1024}) {
    DeviceLayer layer(
        problem(2),
        weights_,
        {.operands = operands(), .experts_per_wave = experts_per_wave, .pool_rows = kPoolGranule});
    SCOPED_TRACE(testing::Message() << experts_per_wave << " experts a wave");
    expect_the_same_in_all_tiles(layer, Counts::kFull);
    EXPECT_TRUE(layer.is_intact());
  }
}

std::string name_of(const testing::TestParamInfo<Sameness::ParamType>& info) {
  const auto& [operands, shape] = info.param;
  return (operands == sm90::Operands::kFloat8 ? "fp8_" : "bf16_") + std::to_string(shape.hidden) +
         "x" + std::to_string(shape.intermediate);
}

INSTANTIATE_TEST_SUITE_P(
    Hopper,
    Sameness,
    testing::Combine(testing::Values(sm90::Operands::kFloat8, sm90::Operands::kBfloat16),
                     testing::Values(Shape{160, 96}, Shape{512, 288}, Shape{1056, 544})),
    name_of);

}  // namespace
}  // namespace megamoe::test
