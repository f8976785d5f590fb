#include "files/input_file.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "numerics/quantize.hpp"
#include "raw_file.hpp"
#include "refusal.hpp"

namespace megamoe::testing {
namespace {

constexpr std::int64_t kTokens = 5;
constexpr int kHidden = 64, kTopk = 3;

std::vector<std::uint16_t> bf16_values() {
  std::vector<std::uint16_t> values;
  for (int i = 0; i < kTokens * kHidden; ++i)
    values.push_back(
        to_bfloat16(static_cast<float>(i % 37 - 18) * (i % 2 == 0 ? 0.37F : 11.0F)).bits);
  values[70] = 0x7FC0;  // a NaN in token 1: legal
  return values;
}

std::vector<std::int64_t> id_values() {
  std::vector<std::int64_t> ids;
  for (int i = 0; i < kTokens * kTopk; ++i)
    ids.push_back(i - 1);
  return ids;
}

std::vector<RawTensor> plain_input() {
  std::vector<float> weights(kTokens * kTopk);
  for (std::size_t i = 0; i < weights.size(); ++i)
    weights[i] = static_cast<float>(i) / 8;
  return {{"x", "BF16", {kTokens, kHidden}, raw(bf16_values())},
          {"topk_ids", "I64", {kTokens, kTopk}, raw(id_values())},
          {"topk_weights", "F32", {kTokens, kTopk}, raw(weights)}};
}

class Input : public ::testing::Test {
 protected:
  InputFile open(const std::vector<RawTensor>& tensors, int shift = 0) {
    write_file(folder_.file("x"), raw_safetensors(tensors, shift));
    return InputFile(folder_.file("x"));
  }
  std::string refused(const std::vector<RawTensor>& tensors) {
    return refusal([&] { open(tensors); });
  }

 private:
  ScratchFolder folder_;
};

TEST_F(Input, QuantisesBf16RowsWhereverTheyLie) {
  const auto values = bf16_values();
  for (int shift = 0; shift < 4; ++shift) {
    SCOPED_TRACE(shift);
    const InputFile input = open(plain_input(), shift);
    EXPECT_EQ(input.tokens(), kTokens);
    EXPECT_EQ(input.hidden(), kHidden);
    EXPECT_EQ(input.topk(), kTopk);
    std::vector<std::uint8_t> codes(2 * kHidden), scales(2 * kHidden / 32);
    input.read_rows(1, 2, codes.data(), scales.data());
    for (std::size_t group = 0; group < 4; ++group) {
      float floats[kGroupSize];
      for (std::size_t i = 0; i < kGroupSize; ++i)
        floats[i] = to_float(Bfloat16{values[64 + group * 32 + i]});
      const QuantizedGroup expected = quantize_group(floats);
      EXPECT_EQ(scales[group], expected.scale.bits);
      for (std::size_t i = 0; i < kGroupSize; ++i)
        ASSERT_EQ(codes[group * 32 + i], expected.codes[i]);
    }
    EXPECT_EQ(scales[0], 255);  // the group of the NaN
    EXPECT_NE(scales[1], 255);
    input.release_rows(0, kTokens);
  }
}

TEST_F(Input, TakesRowsThatAreQuantisedAlready) {
  auto tensors = plain_input();
  tensors[0] = {"x", "F8_E4M3", {kTokens, kHidden}, pattern(kTokens * kHidden, 1)};
  expect_says(refused(tensors), "has no tensor 'x_scale'");
  tensors.push_back({"x_scale", "U8", {kTokens, kHidden / 32}, pattern(kTokens * kHidden / 32, 2)});
  const InputFile input = open(tensors);
  std::vector<std::uint8_t> codes(kHidden), scales(2);
  input.read_rows(4, 1, codes.data(), scales.data());
  EXPECT_EQ(as_bytes(codes.data(), kHidden), tensors[0].bytes.substr(4 * kHidden));
  EXPECT_EQ(as_bytes(scales.data(), 2), tensors[3].bytes.substr(8));
}

TEST_F(Input, WidensIdsOf32Bits) {
  auto tensors = plain_input();
  const InputFile wide = open(tensors);
  std::vector<std::int32_t> narrow_ids;
  for (std::int64_t id : id_values())
    narrow_ids.push_back(static_cast<std::int32_t>(id));
  tensors[1] = {"topk_ids", "I32", {kTokens, kTopk}, raw(narrow_ids)};
  const InputFile narrow = open(tensors, 1);
  for (const InputFile* input : {&wide, &narrow}) {
    std::vector<std::int64_t> ids(2 * kTopk);
    std::vector<float> weights(2 * kTopk);
    input->read_routing(0, 2, ids.data(), weights.data());
    EXPECT_EQ(ids, (std::vector<std::int64_t>{-1, 0, 1, 2, 3, 4}));
    EXPECT_EQ(weights[5], 5.0F / 8);
  }
}

TEST_F(Input, SplitsEvenlyUnlessTheFileSays) {
  using Split = std::vector<std::int64_t>;
  const InputFile even = open(plain_input());
  EXPECT_EQ(even.tokens_per_rank(std::nullopt), Split{5});
  EXPECT_EQ(even.tokens_per_rank(3), (Split{2, 2, 1}));
  EXPECT_EQ(even.tokens_per_rank(7), (Split{1, 1, 1, 1, 1, 0, 0}));
  expect_says(refusal([&] { even.tokens_per_rank(0); }), "ranks is 0");
  expect_says(refusal([&] { even.tokens_per_rank(73); }), "ranks is 73", "1 to 72");

  const auto with_split = [&](const Split& split) {
    auto tensors = plain_input();
    tensors.push_back(
        {"tokens_per_rank", "I64", {static_cast<std::int64_t>(split.size())}, raw(split)});
    return open(tensors, 1);
  };
  EXPECT_EQ(with_split({0, 5, 0}).tokens_per_rank(std::nullopt), (Split{0, 5, 0}));
  EXPECT_EQ(with_split({4, 1}).tokens_per_rank(2), (Split{4, 1}));
  expect_says(refusal([&] {
                with_split({4, 1}).tokens_per_rank(3);
              }),
              "'tokens_per_rank'",
              "has 2 ranks",
              "has 3");
  expect_says(refusal([&] { with_split({4, 0}).tokens_per_rank(2); }), "sums to 4", "x has 5");
  expect_says(refusal([&] { with_split({4, 2}).tokens_per_rank(2); }), "index 1 is 2", "0 to 1");
  expect_says(refusal([&] { with_split({-1, 6}).tokens_per_rank(2); }), "index 0 is -1");
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  expect_says(refusal([&] {
                with_split({5, kMost, kMost}).tokens_per_rank(3);
              }),
              "index 1 is 9223372036854775807");
  expect_says(refusal([&] { with_split({}); }), "[0]", "1 to 72 ranks");
  expect_says(refusal([&] { with_split(Split(73, 0)); }), "[73]");
}

TEST_F(Input, OfNoTokensIsLegal) {
  const InputFile input = open({{"x", "BF16", {0, 32}, ""},
                                {"topk_ids", "I64", {0, 2}, ""},
                                {"topk_weights", "F32", {0, 2}, ""}});
  EXPECT_EQ(input.tokens(), 0);
  EXPECT_EQ(input.tokens_per_rank(2), (std::vector<std::int64_t>{0, 0}));
  input.read_rows(0, 0, nullptr, nullptr);
  input.read_routing(0, 0, nullptr, nullptr);
  input.release_rows(0, 0);
}

TEST_F(Input, RefusesEachLie) {
  const auto with = [](std::size_t which,
                       const std::string& type,
                       std::vector<std::int64_t> shape,
                       std::size_t bytes) {
    auto tensors = plain_input();
    tensors[which] = {tensors[which].name, type, std::move(shape), std::string(bytes, '\0')};
    return tensors;
  };
  expect_says(refused(with(0, "F32", {5, 64}, 1280)), "'x'", "is F32", "BF16 or F8_E4M3");
  expect_says(refused(with(0, "BF16", {5, 33}, 330)), "'x'", "hidden size 33", "multiple of 32");
  expect_says(refused(with(0, "BF16", {5, 0}, 0)), "hidden size 0");
  expect_says(refused(with(0, "BF16", {320}, 640)), "2 axes");
  expect_says(refused(with(1, "F32", {5, 3}, 60)), "'topk_ids'", "I64 or I32");
  expect_says(refused(with(1, "I64", {5, 0}, 0)), "'topk_ids'", "k from 1 to 32");
  expect_says(refused(with(1, "I64", {5, 33}, 1320)), "'topk_ids'", "k from 1 to 32");
  expect_says(refused(with(1, "I64", {4, 3}, 96)), "'topk_ids'", "axis 0", "is 4", "must be 5");
  expect_says(refused(with(2, "F32", {5, 2}, 40)), "'topk_weights'", "axis 1", "is 2", "must be 3");
  expect_says(refused(with(2, "BF16", {5, 3}, 30)), "'topk_weights'", "is BF16", "must be F32");
  auto tensors = with(0, "F8_E4M3", {5, 64}, 320);
  tensors.push_back({"x_scale", "U8", {5, 3}, std::string(15, '\0')});
  expect_says(refused(tensors), "'x_scale'", "axis 1", "is 3", "must be 2");
  tensors = plain_input();
  tensors.push_back({"tokens_per_rank", "I32", {1}, std::string(4, '\0')});
  expect_says(refused(tensors), "'tokens_per_rank'", "must be I64");
  tensors = plain_input();
  tensors.erase(tensors.begin() + 1);
  expect_says(refused(tensors), "has no tensor 'topk_ids'");
}

}  // namespace
}  // namespace megamoe::testing
