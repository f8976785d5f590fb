#include "reference/compare.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "megamoe/error.hpp"

namespace megamoe {
namespace {

constexpr std::int64_t kHidden = 32;
constexpr std::uint16_t kInfinityBits = 0x7F80;

// Every cell of y is 1 and was summed from slots of magnitude 2: bound 2^-7 * 2 + 0.03.
ReferenceOutput ones(std::int64_t num_tokens) {
  ReferenceOutput output;
  output.y.assign(static_cast<std::size_t>(num_tokens * kHidden), to_bfloat16(1.0F));
  output.slot_magnitude.assign(output.y.size(), 2.0F);
  return output;
}

constexpr double kBoundOfOnes = 2 * 0x1p-7 + 0.03;

TEST(Compare, EqualOutputsAgree) {
  const ReferenceOutput wanted = ones(3);
  const Comparison comparison = compare(wanted.y, wanted, kHidden);
  EXPECT_TRUE(comparison.agrees());
  EXPECT_EQ(comparison.relative_l2, 0);
  EXPECT_NE(comparison.explain().find("agrees"), std::string::npos);
}

TEST(Compare, OneCellBeyondItsBoundIsFoundAndNamed) {
  const ReferenceOutput wanted = ones(2000);  // so many that the norm alone would not notice
  std::vector<Bfloat16> got = wanted.y;
  got[7 * kHidden + 5] = to_bfloat16(1.0625F);
  const Comparison comparison = compare(got, wanted, kHidden);
  EXPECT_LE(comparison.relative_l2, kExactTolerance.relative_l2);
  EXPECT_FALSE(comparison.agrees());
  EXPECT_EQ(comparison.cells_beyond_bound, 1);
  EXPECT_EQ(comparison.worst.token, 7);
  EXPECT_EQ(comparison.worst.column, 5);
  EXPECT_EQ(comparison.worst.got, 1.0625F);
  EXPECT_EQ(comparison.worst.wanted, 1.0F);
  EXPECT_DOUBLE_EQ(comparison.worst.bound, kBoundOfOnes);
  EXPECT_DOUBLE_EQ(comparison.worst.share, 0.0625 / kBoundOfOnes);
  for (const char* part : {"differs", "token 7", "column 5", "1.0625"})
    EXPECT_NE(comparison.explain().find(part), std::string::npos) << comparison.explain();
  EXPECT_TRUE(compare(got, wanted, kHidden, kRegroupedTolerance).agrees());
}

TEST(Compare, ACellWithinItsBoundAgrees) {
  const ReferenceOutput wanted = ones(2000);
  std::vector<Bfloat16> got = wanted.y;
  got[9] = to_bfloat16(1.0390625F);
  EXPECT_TRUE(compare(got, wanted, kHidden).agrees());
}

TEST(Compare, ManySmallDifferencesBreakTheNorm) {
  const ReferenceOutput wanted = ones(4);
  std::vector<Bfloat16> got(wanted.y.size(), to_bfloat16(1.0078125F));
  const Comparison comparison = compare(got, wanted, kHidden);
  EXPECT_EQ(comparison.cells_beyond_bound, 0);
  EXPECT_DOUBLE_EQ(comparison.relative_l2, 0.0078125);
  EXPECT_FALSE(comparison.agrees());
  EXPECT_TRUE(compare(got, wanted, kHidden, kRegroupedTolerance).agrees());
}

TEST(Compare, CancellingSlotsWidenTheBound) {
  ReferenceOutput wanted = ones(2000);
  wanted.slot_magnitude[9] = 100.0F;
  std::vector<Bfloat16> got = wanted.y;
  got[9] = to_bfloat16(1.25F);
  EXPECT_TRUE(compare(got, wanted, kHidden).agrees());
}

TEST(Compare, NanMustMeetNanAndNothingElse) {
  ReferenceOutput wanted = ones(3);
  for (std::int64_t i = kHidden; i < 2 * kHidden; ++i) {
    wanted.y[static_cast<std::size_t>(i)] = {Bfloat16::kNan};
    wanted.slot_magnitude[static_cast<std::size_t>(i)] = std::numeric_limits<float>::quiet_NaN();
  }
  std::vector<Bfloat16> got = wanted.y;
  EXPECT_TRUE(compare(got, wanted, kHidden).agrees());
  EXPECT_EQ(compare(got, wanted, kHidden).nonfinite_cells, kHidden);

  got[kHidden + 4] = to_bfloat16(1.0F);
  Comparison comparison = compare(got, wanted, kHidden);
  EXPECT_FALSE(comparison.agrees()) << "a hidden NaN";
  EXPECT_EQ(comparison.nonfinite_mismatches, 1);
  EXPECT_EQ(comparison.first_mismatch.token, 1);
  EXPECT_EQ(comparison.first_mismatch.column, 4);

  got = wanted.y;
  got[0] = {Bfloat16::kNan};
  EXPECT_FALSE(compare(got, wanted, kHidden).agrees()) << "a NaN that spread";

  got = wanted.y;
  got[kHidden] = {0xFFC0};
  EXPECT_FALSE(compare(got, wanted, kHidden).agrees()) << "the contract names one NaN";
}

TEST(Compare, InfinitiesMustBeTheSame) {
  ReferenceOutput wanted = ones(1);
  wanted.y[3] = {kInfinityBits};
  std::vector<Bfloat16> got = wanted.y;
  EXPECT_TRUE(compare(got, wanted, kHidden).agrees());
  got[3] = {0xFF80};
  EXPECT_FALSE(compare(got, wanted, kHidden).agrees());
  got[3] = to_bfloat16(3e38F);
  EXPECT_FALSE(compare(got, wanted, kHidden).agrees());
}

TEST(Compare, AZeroReferenceTakesZerosOnly) {
  ReferenceOutput wanted = ones(1);
  wanted.y.assign(kHidden, Bfloat16{});
  wanted.slot_magnitude.assign(kHidden, 0.0F);
  std::vector<Bfloat16> got = wanted.y;
  EXPECT_TRUE(compare(got, wanted, kHidden).agrees());
  got[3] = to_bfloat16(1e-30F);
  EXPECT_FALSE(compare(got, wanted, kHidden).agrees());
}

TEST(Compare, NoCellsAgree) {
  EXPECT_TRUE(compare({}, ReferenceOutput{}, kHidden).agrees());
}

TEST(Compare, OtherSizesAreRefused) {
  const ReferenceOutput wanted = ones(2);
  EXPECT_THROW(compare(std::span(wanted.y).first(kHidden), wanted, kHidden), Error);
}

}  // namespace
}  // namespace megamoe
