// The accumulators themselves, before any rounding hides their error. A bias of minus what fp64
// says leaves of a sum only its error, and that survives the roundings behind it, as they are
// relative: linear 1's to about a sixteenth, linear 2's to a few thousandths of the error.
#include "device_layer.hpp"
#include "gpu_test.hpp"
#include "pool_image.hpp"
#include "stage_reference.hpp"

namespace megamoe::test {
namespace {

struct Case {
  int hidden, intermediate, block_m;
};

// What an expert's one token looks like; all rows of the expert are copies of it.
enum class RowKind { kPlain, kOutlier, kUneven, kCancelling };
constexpr int kKinds = 4;

class Accumulators : public GpuTest,
                     public testing::WithParamInterface<std::tuple<sm90::Operands, Case>> {
 protected:
  static constexpr std::uint64_t kSeed = 33;
  static constexpr float kLargeGate = 40.0F;  // silu of it is itself

  static sm90::Operands operands() { return std::get<0>(GetParam()); }
  static const Case& kase() { return std::get<1>(GetParam()); }
  // Columns of even groups show the gate's error, those of odd ones the up's.
  static bool shows_gate(int column) { return column / 32 % 2 == 0; }
  // Where a column's tested row lies in [gate; up].
  static int tested_row(int column) {
    return shows_gate(column) ? column : kase().intermediate + column;
  }

  static Problem problem() {
    return {.experts = kKinds,
            .topk = 1,
            .hidden = kase().hidden,
            .intermediate = kase().intermediate,
            .capacity = kKinds * (kase().block_m + 3),
            .has_biases = true};
  }

  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    weights_ = random_weights(problem(), 5, kSeed);
    std::fill(weights_.linear1_bias.begin(), weights_.linear1_bias.end(), 0.0F);
    std::fill(weights_.linear2_bias.begin(), weights_.linear2_bias.end(), 0.0F);
    silence_the_other_rows();
    pair_up_groups();
    make_tokens();
  }

  // The gate or up that a column doesn't show has weights of zero.
  void silence_the_other_rows() {
    const int row_bytes = kase().hidden / 2;
    for (int row = 0; row < kKinds * 2 * kase().intermediate; ++row) {
      const int in_expert = row % (2 * kase().intermediate);
      if (in_expert == tested_row(in_expert % kase().intermediate)) continue;
      std::fill_n(weights_.linear1.begin() + std::ptrdiff_t{row} * row_bytes, row_bytes, 0);
    }
  }

  // Weights of the last kind's expert: each odd group but the first repeats the one before it.
  void pair_up_groups() {
    const int groups = kase().hidden / 32;
    const int first_row = (kKinds - 1) * 2 * kase().intermediate;
    for (int row = first_row; row < kKinds * 2 * kase().intermediate; ++row)
      for (int g = 3; g < groups; g += 2) {
        const std::ptrdiff_t at = std::ptrdiff_t{row} * groups + g;
        std::copy_n(
            weights_.linear1.begin() + (at - 1) * 16, 16, weights_.linear1.begin() + at * 16);
        weights_.linear1_scale[static_cast<std::size_t>(at)] =
            weights_.linear1_scale[static_cast<std::size_t>(at - 1)];
      }
  }

  static std::vector<float> row_of(RowKind kind, std::mt19937_64& random) {
    std::normal_distribution<float> normal(0.0F, 1.0F);
    std::vector<float> row(static_cast<std::size_t>(kase().hidden));
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::size_t group = i / 32;
      row[i] = normal(random);
      if (kind == RowKind::kUneven)
        row[i] *= group % 3 == 1 ? 0.0F : group % 3 == 2 ? 0x1p-9F : 1.0F;
      if (kind == RowKind::kCancelling && group >= 3 && group % 2 == 1) row[i] = -row[i - 32];
    }
    if (kind == RowKind::kOutlier) row[random() % row.size()] = 4096.0F;
    return row;
  }

  void make_tokens() {
    const auto hidden = static_cast<std::size_t>(kase().hidden);
    std::mt19937_64 random(kSeed + 1);
    RandomInput kinds;
    kinds.codes.resize(kKinds * hidden);
    kinds.scales.resize(kKinds * hidden / 32);
    for (std::size_t k = 0; k < kKinds; ++k)
      quantize_row(row_of(static_cast<RowKind>(k), random).data(),
                   kase().hidden,
                   &kinds.codes[k * hidden],
                   &kinds.scales[k * hidden / 32]);
    input_.tokens = problem().capacity;
    for (int t = 0; t < input_.tokens; ++t) {
      const auto k = static_cast<std::ptrdiff_t>(t % kKinds);
      const auto append = [k](auto& to, const auto& from, std::size_t width) {
        const auto first = from.begin() + k * static_cast<std::ptrdiff_t>(width);
        to.insert(to.end(), first, first + static_cast<std::ptrdiff_t>(width));
      };
      append(input_.codes, kinds.codes, hidden);
      append(input_.scales, kinds.scales, hidden / 32);
      input_.ids.push_back(k);
      input_.weights.push_back(1.0F);
    }
  }

  static PoolRow first_row(int expert) {
    return {expert, expert * ceil_div(kase().block_m + 3, kase().block_m), 0};
  }
  static std::vector<PoolRow> rows_of(int expert) {
    std::vector<PoolRow> rows;
    const int block = first_row(expert).block;
    for (const int i : {0, kase().block_m / 2, kase().block_m - 1, kase().block_m + 2})
      rows.push_back({expert, block + i / kase().block_m, i % kase().block_m});
    return rows;
  }
  static PoolImage image_of(const DeviceLayer& layer) {
    return {layer, 0, kKinds * ceil_div(kase().block_m + 3, kase().block_m)};
  }

  // The gate e with silu(e) = a, for a small a.
  static double gate_with(double a) {
    double e = 2 * a;
    for (int i = 0; i < 30; ++i)
      e = a * (1.0 + std::exp(-e));
    return e;
  }

  // The tensor core adds the products of an FP8 instruction on a grid that its largest one sets:
  // beside an outlier the others lose more than usual.
  static double bound(int expert) {
    if (operands() == sm90::Operands::kBfloat16) return 3e-5;
    return static_cast<RowKind>(expert) == RowKind::kOutlier ? 6e-4 : 3e-4;
  }
  static void report(const char* linear, int expert, const Distance& distance) {
    std::printf("  %s, kind %d: accumulators %.2e\n", linear, expert, distance.relative());
    EXPECT_GT(distance.size, 0.0);
    EXPECT_LT(distance.relative(), bound(expert)) << linear << ", kind " << expert;
  }

  RandomWeights weights_;
  RandomInput input_;
};

TEST_P(Accumulators, OfLinear1) {
  DeviceLayer layer(problem(), weights_, {.operands = operands(), .block_m = kase().block_m});
  layer.set_input(0, input_);
  const int columns = kase().intermediate;
  std::vector<std::vector<DotProduct>> wanted(kKinds);
  for (int e = 0; e < kKinds; ++e) {
    const RegroupedRow row =
        regrouped_row(operands(),
                      input_.codes.data() + static_cast<std::ptrdiff_t>(e) * kase().hidden,
                      input_.scales.data() + static_cast<std::ptrdiff_t>(e) * kase().hidden / 32,
                      kase().hidden);
    std::vector<double> values(static_cast<std::size_t>(kase().hidden));
    for (int k = 0; k < kase().hidden; ++k)
      values[static_cast<std::size_t>(k)] =
          std::ldexp(element_value(operands(),
                                   row.elements[static_cast<std::size_t>(
                                       k / 128 * 128 + sm90::token_position(operands(), k % 128))]),
                     row.exponent);
    const WeightView w = weights_.view().expert(e, problem());
    wanted[static_cast<std::size_t>(e)].resize(static_cast<std::size_t>(columns));
    parallel_for(columns, [&](int c) {
      wanted[static_cast<std::size_t>(e)][static_cast<std::size_t>(c)] =
          dot_product(w.linear1, w.linear1_scale, tested_row(c), values);
    });
    float* bias = &weights_.linear1_bias[static_cast<std::size_t>(e * 2 * columns)];
    for (int c = 0; c < columns; ++c) {
      bias[tested_row(c)] =
          -static_cast<float>(wanted[static_cast<std::size_t>(e)][static_cast<std::size_t>(c)].sum);
      bias[shows_gate(c) ? columns + c : c] = shows_gate(c) ? 1.0F : kLargeGate;
    }
  }
  layer.set_biases(weights_);
  layer.poison();
  layer.forward(device_workers());
  const PoolImage pool = image_of(layer);
  for (int e = 0; e < kKinds; ++e) {
    Distance distance;
    const std::vector<double> first = pool.values(Phase::kLinear2, first_row(e));
    for (const PoolRow& row : rows_of(e)) {
      const std::vector<double> a = pool.values(Phase::kLinear2, row);
      EXPECT_EQ(a, first) << "copies of one token";
      for (int c = 0; c < columns; ++c) {
        const double at = a[static_cast<std::size_t>(c)];
        const double error = shows_gate(c) ? gate_with(at) : at / static_cast<double>(kLargeGate);
        const double size = wanted[static_cast<std::size_t>(e)][static_cast<std::size_t>(c)].size();
        distance.add(size + error, size);
      }
    }
    report("linear 1", e, distance);
  }
}

TEST_P(Accumulators, OfLinear2) {
  DeviceLayer layer(problem(), weights_, {.operands = operands(), .block_m = kase().block_m});
  layer.set_input(0, input_);
  for (int e = 0; e < kKinds; ++e)
    for (int c = 0; c < kase().intermediate; ++c)
      weights_.linear1_bias[static_cast<std::size_t>(
          e * 2 * kase().intermediate + (shows_gate(c) ? kase().intermediate + c : c))] = 1.0F;
  layer.set_biases(weights_);
  layer.forward(device_workers());
  const PoolImage before = image_of(layer);
  const auto hidden = static_cast<std::size_t>(kase().hidden);
  std::vector<DotProduct> wanted(kKinds * hidden);
  for (int e = 0; e < kKinds; ++e) {
    const std::vector<double> values = before.values(Phase::kLinear2, first_row(e));
    const WeightView w = weights_.view().expert(e, problem());
    parallel_for(kase().hidden, [&](int h) {
      const std::size_t at = static_cast<std::size_t>(e) * hidden + static_cast<std::size_t>(h);
      wanted[at] = dot_product(w.linear2, w.linear2_scale, h, values);
      weights_.linear2_bias[at] = -static_cast<float>(wanted[at].sum);
    });
  }
  layer.set_biases(weights_);
  layer.poison();
  layer.forward(device_workers());
  const PoolImage after = image_of(layer);
  const std::vector<Bfloat16> y = layer.output(0);
  for (int e = 0; e < kKinds; ++e) {
    EXPECT_EQ(after.values(Phase::kLinear2, first_row(e)),
              before.values(Phase::kLinear2, first_row(e)));
    Distance distance;
    for (std::size_t t = static_cast<std::size_t>(e); t * hidden < y.size(); t += kKinds)
      for (std::size_t h = 0; h < hidden; ++h) {
        const double size = wanted[static_cast<std::size_t>(e) * hidden + h].size();
        distance.add(size + static_cast<double>(to_float(y[t * hidden + h])), size);
      }
    report("linear 2", e, distance);
  }
}

std::string name_of(const testing::TestParamInfo<Accumulators::ParamType>& info) {
  const auto& [operands, c] = info.param;
  return std::string(operands == sm90::Operands::kFloat8 ? "fp8_" : "bf16_") +
         std::to_string(c.hidden) + "x" + std::to_string(c.intermediate) + "_" +
         std::to_string(c.block_m);
}

INSTANTIATE_TEST_SUITE_P(Hopper,
                         Accumulators,
                         testing::Combine(testing::Values(sm90::Operands::kFloat8,
                                                          sm90::Operands::kBfloat16),
                                          testing::Values(Case{1024, 512, 8},
                                                          Case{4096, 2048, 16},
                                                          Case{2880, 2880, 32},
                                                          Case{1056, 544, 64},
                                                          Case{2048, 768, 96},
                                                          Case{5120, 1536, 128},
                                                          Case{7168, 2048, 160})),
                         name_of);

}  // namespace
}  // namespace megamoe::test
