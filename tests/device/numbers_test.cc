// Rows and weights that break what is careless with exponents, through the whole layer, against the
// fp64 reference: each row by itself.
#include <limits>
#include <ostream>

#include "device_layer.hpp"
#include "gpu_test.hpp"
#include "whole_reference.hpp"

namespace megamoe::test {
namespace {

enum class RowKind {
  kPlain,
  kOutlier,       // one value of 2^12 times the others
  kZeroGroups,    // some groups zero, under scales that must not count
  kUnnormalised,  // codes far below what their scale could hold
  kSmall,         // everything 2^-20
  kZero,
  kNanScale,
  kNanCode,
};
constexpr int kRowKinds = 8;

void write_row(
    RowKind kind, int hidden, std::mt19937_64& random, std::uint8_t* codes, std::uint8_t* scales) {
  std::normal_distribution<float> normal(0.0F, 1.0F);
  std::vector<float> row(static_cast<std::size_t>(hidden));
  for (std::size_t i = 0; i < row.size(); ++i) {
    row[i] = kind == RowKind::kZero ? 0.0F : normal(random);
    if (kind == RowKind::kZeroGroups && i / 32 % 3 == 1) row[i] = 0.0F;
    if (kind == RowKind::kSmall) row[i] *= 0x1p-20F;
  }
  if (kind == RowKind::kOutlier) row[random() % row.size()] = 4096.0F;
  quantize_row(row.data(), hidden, codes, scales);
  for (int g = 0; g < hidden / 32; ++g) {
    if (kind == RowKind::kZeroGroups && g % 3 == 1) scales[g] = 250;
    if (kind != RowKind::kUnnormalised) continue;
    scales[g] = static_cast<std::uint8_t>(scales[g] + 9);
    for (int i = g * 32; i < g * 32 + 32; ++i)
      codes[i] = static_cast<std::uint8_t>((codes[i] & 0x80) | (random() % 11));
  }
  if (kind == RowKind::kNanScale) scales[hidden / 32 / 2] = 255;
  if (kind == RowKind::kNanCode) codes[random() % row.size()] = 0xFF;
}

RandomInput hostile_input(const Problem& problem, int tokens, std::uint64_t seed) {
  RandomInput input = random_input(problem, tokens, seed);
  std::mt19937_64 random(seed + 1);
  for (int t = 0; t < tokens; ++t) {
    const std::ptrdiff_t at = std::ptrdiff_t{t} * problem.hidden;
    write_row(static_cast<RowKind>(t % kRowKinds),
              problem.hidden,
              random,
              input.codes.data() + at,
              input.scales.data() + at / 32);
  }
  const auto pair = [&](int token, int k) {
    return static_cast<std::size_t>(token * problem.topk + k);
  };
  // A masked slot with a weight of NaN adds nothing; a token without any slot is +0; one expert may
  // be named twice.
  input.ids[pair(8, 1)] = -1;
  input.weights[pair(8, 1)] = std::numeric_limits<float>::quiet_NaN();
  input.ids[pair(9, 0)] = input.ids[pair(9, 1)] = std::numeric_limits<std::int64_t>::min();
  input.ids[pair(11, 0)] = input.ids[pair(11, 1)] = 2;
  return input;
}

struct Variant {
  const char* name;
  Activation activation = {};
  bool has_biases = false;
};

void expect_agreement(const Problem& problem,
                      const RandomWeights& weights,
                      const RandomInput& input,
                      sm90::Operands operands) {
  const ReferenceOutput reference = reference_forward(problem, weights.view(), view_of(input));
  for (const int block_m : {8, 32, 64, 160}) {
    SCOPED_TRACE(testing::Message() << "block_m " << block_m);
    DeviceLayer layer(problem, weights, {.operands = operands, .block_m = block_m});
    layer.set_input(0, input);
    layer.poison();
    layer.forward(device_workers());
    const std::vector<Bfloat16> y = layer.output(0);
    const Tolerance tolerance = tolerance_of(operands);
    const Comparison comparison = compare(y, reference, problem.hidden, tolerance);
    const RowDistances rows = row_distances(y, reference, problem.hidden, tolerance);
    if (block_m == 8)
      std::printf("  rows %.2e, worst %.2e (token %d), cells not finite %td\n",
                  rows.all.relative(),
                  rows.worst,
                  rows.worst_token,
                  static_cast<std::ptrdiff_t>(comparison.nonfinite_cells));
    EXPECT_TRUE(comparison.agrees()) << comparison.explain();
    EXPECT_LT(rows.all.relative(), tolerance.relative_l2);
    EXPECT_LT(rows.worst, 3 * tolerance.relative_l2) << "token " << rows.worst_token;
    EXPECT_EQ(rows.cells_beyond_bound, 0);
    EXPECT_TRUE(layer.is_intact());
  }
}

class Numbers : public GpuTest,
                public testing::WithParamInterface<std::tuple<sm90::Operands, Variant>> {
 protected:
  static constexpr std::uint64_t kSeed = 55;
  static sm90::Operands operands() { return std::get<0>(GetParam()); }
  static Problem problem() {
    const Variant& variant = std::get<1>(GetParam());
    return {.experts = 4,
            .topk = 2,
            .hidden = 608,
            .intermediate = 416,
            .capacity = 40,
            .has_biases = variant.has_biases,
            .activation = variant.activation};
  }
};

TEST_P(Numbers, HostileRowsAgreeWithFp64) {
  const RandomWeights weights = random_weights(problem(), 9, kSeed);
  expect_agreement(problem(), weights, hostile_input(problem(), 40, kSeed + 1), operands());
}

// A weight scale of NaN makes NaN of what it touches: one channel of linear 2, or all through
// linear 1; and of no other expert's tokens.
TEST_P(Numbers, NanWeightsStayWithTheirExpert) {
  RandomWeights weights = random_weights(problem(), 3, kSeed);
  const int hidden_groups = problem().hidden / 32;
  const int intermediate_groups = problem().intermediate / 32;
  weights.linear2_scale[static_cast<std::size_t>((2 * problem().hidden + 7) * intermediate_groups +
                                                 1)] = 255;
  weights.linear1_scale[static_cast<std::size_t>(
      (3 * 2 * problem().intermediate + 5) * hidden_groups + 2)] = 255;
  expect_agreement(problem(), weights, random_input(problem(), 33, kSeed + 2), operands());
}

// No clamp and no biases, which would bound or swamp what is large.
class UnboundedNumbers : public Numbers {};

// Activations of 2^90 and more, which small weights bring back.
TEST_P(UnboundedNumbers, LargeActivationsComeBack) {
  const Problem large = problem();
  RandomWeights weights = random_weights(large, 3, kSeed);
  const std::size_t half = static_cast<std::size_t>(large.intermediate * large.hidden / 32);
  for (std::size_t i = 0; i < weights.linear1_scale.size(); ++i)
    if (i / half % 2 == 1)
      weights.linear1_scale[i] = static_cast<std::uint8_t>(weights.linear1_scale[i] + 92);
  for (std::uint8_t& scale : weights.linear2_scale)
    scale = static_cast<std::uint8_t>(scale - 92);
  expect_agreement(large, weights, random_input(large, 33, kSeed + 3), operands());
}

constexpr Activation precise(Activation activation) {
  activation.fast_math = false;
  return activation;
}

const Variant kVariants[] = {
    {"swiglu"},
    {"precise", precise({})},
    {"clamped", {.clamp = 0.5F}},
    {"biased", {}, true},
    {"oai", {.kind = ActivationKind::kSwigluOai, .limit = 1.0F}, true},
    {"oai_precise", precise({.kind = ActivationKind::kSwigluOai}), true},
};

constexpr float kNoClamp = std::numeric_limits<float>::infinity();
const Variant kUnbounded[] = {
    {"swiglu", {.clamp = kNoClamp}},
    {"precise", precise({.clamp = kNoClamp})},
};

std::string name_of(const testing::TestParamInfo<Numbers::ParamType>& info) {
  const auto& [operands, variant] = info.param;
  return (operands == sm90::Operands::kFloat8 ? "fp8_" : "bf16_") + std::string(variant.name);
}

INSTANTIATE_TEST_SUITE_P(Hopper,
                         Numbers,
                         testing::Combine(testing::Values(sm90::Operands::kFloat8,
                                                          sm90::Operands::kBfloat16),
                                          testing::ValuesIn(kVariants)),
                         name_of);

INSTANTIATE_TEST_SUITE_P(Hopper,
                         UnboundedNumbers,
                         testing::Combine(testing::Values(sm90::Operands::kFloat8,
                                                          sm90::Operands::kBfloat16),
                                          testing::ValuesIn(kUnbounded)),
                         name_of);

class WideWeights : public GpuTest {};

// Exponents of one row span 50 binades, and the tokens are zero wherever they are large: what is
// left are the groups that a careless form would flush. FP8 refuses the layer, bf16 computes it.
TEST_F(WideWeights, NothingIsFlushed) {
  const Problem problem{
      .experts = 4, .topk = 2, .hidden = 320, .intermediate = 160, .capacity = 24};
  RandomWeights weights = random_weights(problem, 2, 77);
  for (std::size_t i = 0; i < weights.linear1_scale.size(); ++i)
    if (i % 10 != 0)
      weights.linear1_scale[i] = static_cast<std::uint8_t>(weights.linear1_scale[i] - 50);
  for (std::size_t i = 0; i < weights.linear2_scale.size(); ++i)
    weights.linear2_scale[i] = static_cast<std::uint8_t>(weights.linear2_scale[i] - i % 5 * 9);
  RandomInput input = random_input(problem, 24, 78);
  for (std::size_t i = 0; i < input.scales.size(); ++i) {
    if (i % 10 == 0) {
      input.scales[i] = 127;
      std::fill_n(input.codes.begin() + static_cast<std::ptrdiff_t>(i) * 32, 32, 0);
    } else {
      input.scales[i] = static_cast<std::uint8_t>(input.scales[i] + 50);
    }
  }
  EXPECT_THROW(DeviceLayer(problem, weights, {.operands = sm90::Operands::kFloat8}), Error);
  expect_agreement(problem, weights, input, sm90::Operands::kBfloat16);
}

}  // namespace
}  // namespace megamoe::test
