#include <gtest/gtest.h>

#include <algorithm>

#include "machine/sm100/descriptor.hpp"
#include "machine/sm100/plans.hpp"
#include "pair_model.hpp"
#include "tile_case.hpp"

// One tile through the rules of the hardware, from packed weights to the registers of the epilogue,
// by the machine's own layouts, descriptors, stage and columns: they agree with fp64. Then with one
// rule of the hardware wrong at a time: they don't, so that the test sees each of them.
namespace megamoe::test {
namespace {

constexpr std::uint32_t kBase = 1024;  // of the storage; descriptors hold absolute addresses

std::uint32_t u32(std::size_t value) {
  return static_cast<std::uint32_t>(value);
}

template <int kBlockM, class Rules>
class Tile {
 public:
  static constexpr sm100::Plan kPlan = sm100::Choice<kBlockM>::kPlan;
  static constexpr sm100::TmemColumns kColumns = kPlan.columns();
  using Stage = sm100::Stage<kPlan>;

  explicit Tile(const TileCase& data) : data_(data) {}

  void run() {
    for (int step = 0; step < data_.shape.steps(); ++step) {
      load(step);
      issue(step);
    }
  }

  // The largest difference as a part of what was added up.
  double worst() {
    double worst = 0;
    for (std::uint32_t row = 0; row < 256; ++row)
      for (int token = 0; token < data_.shape.last_rows; ++token) {
        const ExpectedSum expected = data_.expected(0, static_cast<int>(row), token);
        const double off = std::abs(sum(row, u32(token)) - expected.value) / expected.magnitude;
        worst = std::max(worst, std::isnan(off) ? 1e30 : off);
      }
    return worst;
  }

 private:
  // The second stage, so that nothing is at its first place by luck.
  std::uint32_t at(std::size_t offset) const { return kBase + u32(sizeof(Stage) + offset); }

  void load(int step) {
    const int half = sm100::half_tokens(data_.shape.last_rows) * sm100::kRowBytes;
    const std::byte* tokens = &data_.tokens[u32(step * sm100::token_tile_bytes(kBlockM))];
    const std::byte* scales = &data_.token_scales[u32(step * sm100::token_scale_bytes(kBlockM))];
    for (int cta = 0; cta < sm100::kPairCtas; ++cta) {
      const std::uint32_t c = u32(cta);
      pair_.copy(c, at(offsetof(Stage, tokens)), tokens + cta * half, u32(half));
      pair_.copy(
          c, at(offsetof(Stage, token_scales)), scales, u32(sm100::token_scale_bytes(kBlockM)));
      const std::int64_t code = std::int64_t{cta} * sm100::kBlockRows * data_.layout.row_bytes() +
                                step * sm100::kStepDepth / 2;
      pair_.copy_float4(c,
                        at(offsetof(Stage, weights)),
                        &data_.codes[static_cast<std::size_t>(code)],
                        u32(data_.layout.row_bytes()),
                        sm100::kBlockRows);
      pair_.copy(c,
                 at(offsetof(Stage, weight_scales)),
                 &data_.weight_scales[u32(data_.layout.scale_offset(cta, step))],
                 sm100::kScaleCopyBytes);
    }
  }

  void issue(int step) {
    const typename PairModel<Rules>::Columns columns{.sums = u32(kColumns.accumulator(1)),
                                                     .a_scales = u32(kColumns.weight_scales()),
                                                     .b_scales = u32(kColumns.token_scales())};
    for (int copy = 0; copy < sm100::token_scale_copies(kBlockM); ++copy)
      pair_.copy_scales(columns.b_scales + u32(copy * sm100::kScaleCopyColumns),
                        checked(sm100::kScaleLayout.descriptor(at(
                            offsetof(Stage, token_scales) + u32(copy * sm100::kScaleCopyBytes)))));
    pair_.copy_scales(columns.a_scales,
                      checked(sm100::kScaleLayout.descriptor(at(offsetof(Stage, weight_scales)))));
    const std::uint32_t instruction =
        sm100::instruction_descriptor(sm100::mma_tokens(data_.shape.last_rows));
    for (int k = 0; k < sm100::kMmasPerStep; ++k) {
      const std::uint64_t along = u32(k) * sm100::kDescriptorNextK;
      const std::uint32_t with_byte = sm100::with_scale_byte(instruction, k);
      EXPECT_EQ(what_is_wrong(InstructionDescriptor{with_byte}), nullptr);
      pair_.multiply(columns,
                     checked(sm100::kTileLayout.descriptor(at(offsetof(Stage, weights))) + along),
                     checked(sm100::kTileLayout.descriptor(at(offsetof(Stage, tokens))) + along),
                     with_byte,
                     step > 0 || k > 0);
    }
  }

  static std::uint64_t checked(std::uint64_t descriptor) {
    EXPECT_EQ(what_is_wrong(MatrixDescriptor{descriptor}), nullptr);
    return descriptor;
  }

  // As the epilogue finds it: gate and up of a channel are rows q and q + 8, in registers of one
  // thread.
  double sum(std::uint32_t row, std::uint32_t token) {
    const std::uint32_t in_half = row % 16;
    const std::uint32_t thread = in_half % 8 * 4 + token % 8 / 2;
    const std::uint32_t i = in_half / 8 * 2 + token % 2;
    const std::uint32_t column = u32(kColumns.accumulator(1)) + token / 8 * 8;
    return pair_.load(row / kTensorLanes, row % kTensorLanes / 16 * 16, column, thread, i);
  }

  const TileCase& data_;
  PairModel<Rules> pair_;
};

template <int kBlockM, class Rules>
double worst_error(int rows, int depth) {
  const TileCase data({.block_m = kBlockM, .depth = depth, .tiles = 1, .last_rows = rows}, 7);
  Tile<kBlockM, Rules> tile(data);
  tile.run();
  return tile.worst();
}

constexpr double kRounding = 1e-6;  // of fp32, as a part of the sum of magnitudes

template <int kBlockM>
void expect_agreement() {
  for (const int rows : {1, kBlockM / 2 + 3, kBlockM})
    for (const int depth : {128, 352})
      EXPECT_LT((worst_error<kBlockM, Hardware>(rows, depth)), kRounding)
          << "block_m " << kBlockM << ", rows " << rows << ", depth " << depth;
}

TEST(Tile, AgreesWithFloat64) {
  expect_agreement<16>();
  expect_agreement<32>();
  expect_agreement<64>();
  expect_agreement<96>();
  expect_agreement<128>();
  expect_agreement<192>();
}

// ---- one wrong rule each

struct ScalesOfTheLeader : Hardware {
  static constexpr std::uint32_t scales_come_from(std::uint32_t) { return 0; }
};
struct TokensByTurns : Hardware {
  static constexpr RowOfCta b_row(std::uint32_t n, std::uint32_t) { return {n % 2, n / 2}; }
};
struct TokensOfTheLeader : Hardware {
  static constexpr RowOfCta b_row(std::uint32_t n, std::uint32_t columns) {
    return {0, n % (columns / 2)};
  }
};
struct FirstScaleByte : Hardware {
  static constexpr std::uint32_t scale_byte(std::uint32_t word, std::uint32_t) {
    return word & 0xFF;
  }
};
struct OneScaleColumn : Hardware {
  static constexpr std::uint32_t scale_column(std::uint32_t) { return 0; }
};
struct OddNibbleFirst : Hardware {
  static constexpr std::uint32_t float4_shift(std::uint32_t k) { return 4 - k % 2 * 4; }
};
struct NibblesWithoutPadding : Hardware {
  static constexpr std::uint32_t float4_byte(std::uint32_t k) { return k / 2; }
};
struct NoSwizzle : Hardware {
  static constexpr std::uint32_t operand_address(const MatrixDescriptor& d,
                                                 std::uint32_t row,
                                                 std::uint32_t k_byte) {
    if (d.swizzle() == Swizzle::kNone) return Hardware::operand_address(d, row, k_byte);
    return d.start() + row / 8 * d.row_group_stride() + row % 8 * 128 + k_byte;
  }
};
struct SwizzleFromTheStart : Hardware {
  static constexpr std::uint32_t operand_address(const MatrixDescriptor& d,
                                                 std::uint32_t row,
                                                 std::uint32_t k_byte) {
    const std::uint32_t address = Hardware::operand_address(d, row, k_byte);
    if (d.swizzle() == Swizzle::kNone) return address;
    return d.start() + swizzled(swizzled(address) - d.start());
  }
};
struct RegistersByRow : Hardware {
  static constexpr std::uint32_t loaded_lane(std::uint32_t thread, std::uint32_t i) {
    return thread / 4 + i % 2 * 8;
  }
  static constexpr std::uint32_t loaded_column(std::uint32_t thread, std::uint32_t i) {
    return i / 4 * 8 + thread % 4 * 2 + i / 2 % 2;
  }
};
struct AnotherBias : Hardware {
  static constexpr int scale_exponent(std::uint32_t byte) { return static_cast<int>(byte) - 128; }
};
struct FewerTokens : Hardware {
  static constexpr std::uint32_t columns(const InstructionDescriptor& d) {
    return d.columns() - 16;
  }
};

template <class Rules>
class WrongRule : public testing::Test {};
using WrongRules = testing::Types<ScalesOfTheLeader,
                                  TokensByTurns,
                                  TokensOfTheLeader,
                                  FirstScaleByte,
                                  OneScaleColumn,
                                  OddNibbleFirst,
                                  NibblesWithoutPadding,
                                  NoSwizzle,
                                  SwizzleFromTheStart,
                                  RegistersByRow,
                                  AnotherBias,
                                  FewerTokens>;
TYPED_TEST_SUITE(WrongRule, WrongRules);

TYPED_TEST(WrongRule, Shows) {
  EXPECT_GT((worst_error<64, TypeParam>(64, 256)), 1e-3);
}

}  // namespace
}  // namespace megamoe::test
