#include <gtest/gtest.h>

#include "checkpoint_folder.hpp"
#include "refusal.hpp"

namespace megamoe::testing {
namespace {

constexpr int kExperts = 2, kHidden = 96, kIntermediate = 64;
constexpr int kRows = 2 * kIntermediate, kGroups1 = kHidden / 32, kGroups2 = kIntermediate / 32;
const char* const kConfig =
    R"({"model_type":"gpt_oss","architectures":["GptOssForCausalLM"],"num_local_experts":2,
    "num_experts_per_tok":4,"hidden_size":96,"intermediate_size":64,"swiglu_limit":6.5,"num_hidden_layers":2})";

std::vector<RawTensor> layer(const std::string& stem, unsigned seed) {
  std::vector<std::uint16_t> bias1, bias2;
  for (int i = 0; i < kExperts * kRows; ++i)
    bias1.push_back(static_cast<std::uint16_t>(0x3F00 + i));
  for (int i = 0; i < kExperts * kHidden; ++i)
    bias2.push_back(static_cast<std::uint16_t>(0xBF00 + i));
  const std::string experts = stem + ".mlp.experts.";
  return {{experts + "gate_up_proj_blocks",
           "U8",
           {kExperts, kRows, kGroups1, 16},
           pattern(kExperts * kRows * kGroups1 * 16, seed)},
          {experts + "gate_up_proj_scales",
           "U8",
           {kExperts, kRows, kGroups1},
           pattern(kExperts * kRows * kGroups1, seed + 1)},
          {experts + "gate_up_proj_bias", "BF16", {kExperts, kRows}, raw(bias1)},
          {experts + "down_proj_blocks",
           "U8",
           {kExperts, kHidden, kGroups2, 16},
           pattern(kExperts * kHidden * kGroups2 * 16, seed + 2)},
          {experts + "down_proj_scales",
           "U8",
           {kExperts, kHidden, kGroups2},
           pattern(kExperts * kHidden * kGroups2, seed + 3)},
          {experts + "down_proj_bias", "BF16", {kExperts, kHidden}, raw(bias2)}};
}

float bf16_at(const std::string& bytes, std::size_t index) {
  Bfloat16 value;
  std::memcpy(&value.bits, bytes.data() + 2 * index, 2);
  return to_float(value);
}

void expect_canonical(const WeightSource& source, const std::vector<RawTensor>& stored) {
  ExpertScratch scratch;
  for (std::size_t expert = 0; expert < kExperts; ++expert) {
    const WeightView view = source.expert(static_cast<int>(expert), scratch);
    for (std::size_t row = 0; row < kRows; ++row) {
      // Canonical row r < I is gate r, stored at 2 r; row I + r is up r, stored at 2 r + 1.
      const std::size_t from = row < kIntermediate ? 2 * row : 2 * (row - kIntermediate) + 1;
      const std::size_t at = expert * kRows + from;
      EXPECT_EQ(as_bytes(view.linear1 + row * kGroups1 * 16, kGroups1 * 16),
                stored[0].bytes.substr(at * kGroups1 * 16, kGroups1 * 16));
      EXPECT_EQ(as_bytes(view.linear1_scale + row * kGroups1, kGroups1),
                stored[1].bytes.substr(at * kGroups1, kGroups1));
      EXPECT_EQ(view.linear1_bias[row], bf16_at(stored[2].bytes, at));
    }
    const std::size_t down = std::size_t{kHidden} * kGroups2;
    EXPECT_EQ(as_bytes(view.linear2, down * 16),
              stored[3].bytes.substr(expert * down * 16, down * 16));
    EXPECT_EQ(as_bytes(view.linear2_scale, down), stored[4].bytes.substr(expert * down, down));
    for (std::size_t row = 0; row < kHidden; ++row)
      EXPECT_EQ(view.linear2_bias[row], bf16_at(stored[5].bytes, expert * kHidden + row));
    source.release(static_cast<int>(expert));
  }
}

TEST(GptOssLayer, UnweavesGateAndUpRows) {
  CheckpointFolder folder;
  folder.config(kConfig);
  std::vector<RawTensor> tensors = layer("model.layers.0", 1);
  const std::vector<RawTensor> second = layer("model.layers.1", 9);
  tensors.insert(tensors.end(), second.begin(), second.end());
  folder.single(tensors, 1);
  const auto source = folder.open(1);
  const WeightFacts& facts = source->facts();
  EXPECT_EQ(facts.experts, kExperts);
  EXPECT_EQ(facts.hidden, kHidden);
  EXPECT_EQ(facts.intermediate, kIntermediate);
  EXPECT_EQ(facts.suggested_topk, 4);
  EXPECT_TRUE(facts.has_biases);
  EXPECT_EQ(facts.suggested_activation.kind, ActivationKind::kSwigluOai);
  EXPECT_EQ(facts.suggested_activation.alpha, 1.702F);
  EXPECT_EQ(facts.suggested_activation.limit, 6.5F);
  expect_says(facts.description, "layer 1", "gpt_oss");
  expect_canonical(*source, second);
  expect_canonical(*folder.open(0), layer("model.layers.0", 1));
}

TEST(GptOssLayer, LimitIs7UnlessTheConfigSaysOtherwise) {
  CheckpointFolder folder;
  folder.config(R"({"model_type":"gpt_oss"})");
  folder.single(layer("model.layers.0", 1));
  EXPECT_EQ(folder.open(0)->facts().suggested_activation.limit, 7.0F);
}

TEST(GptOssLayer, RefusesEachLie) {
  CheckpointFolder folder;
  folder.config(kConfig);
  const auto refused_with = [&](std::size_t which,
                                const std::string& type,
                                std::vector<std::int64_t> shape,
                                std::size_t bytes) {
    auto tensors = layer("model.layers.0", 1);
    tensors[which] = {tensors[which].name, type, std::move(shape), std::string(bytes, '\0')};
    folder.single(tensors);
    return refusal([&] { folder.open(0); });
  };
  expect_says(
      refused_with(0, "I8", {2, 128, 3, 16}, 12'288), "gate_up_proj_blocks", "is I8", "must be U8");
  expect_says(refused_with(0, "U8", {2, 128, 48}, 12'288), "gate_up_proj_blocks", "4 axes");
  expect_says(refused_with(0, "U8", {2, 128, 6, 8}, 12'288),
              "gate_up_proj_blocks",
              "axis 3 (bytes of a group) is 8",
              "must be 16");
  expect_says(refused_with(0, "U8", {2, 127, 3, 16}, 12'192), "127 rows", "must be even");
  expect_says(refused_with(1, "U8", {2, 128, 2}, 512),
              "gate_up_proj_scales",
              "axis 2",
              "is 2",
              "must be 3");
  expect_says(refused_with(2, "BF16", {2, 64}, 256), "gate_up_proj_bias", "axis 1 (rows) is 64");
  expect_says(refused_with(3, "U8", {2, 64, 2, 16}, 4096),
              "down_proj_blocks",
              "axis 1 (hidden size) is 64",
              "must be 96");
  expect_says(refused_with(5, "I16", {2, 96}, 384), "down_proj_bias", "is I16");
  folder.single(layer("model.layers.0", 1));
  folder.config(R"({"model_type":"gpt_oss","hidden_size":128})");
  expect_says(refusal([&] { folder.open(0); }),
              "config.json says that the hidden size is 128",
              "makes it 96");
  folder.config(R"({"model_type":"gpt_oss","num_local_experts":3})");
  expect_says(refusal([&] { folder.open(0); }), "number of experts is 3", "makes it 2");
  auto tensors = layer("model.layers.0", 1);
  tensors.pop_back();
  folder.config(kConfig);
  folder.single(tensors);
  expect_says(refusal([&] { folder.open(0); }),
              "has no tensor 'model.layers.0.mlp.experts.down_proj_bias'",
              "gpt_oss");
}

}  // namespace
}  // namespace megamoe::testing
