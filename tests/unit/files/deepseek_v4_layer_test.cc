#include <gtest/gtest.h>

#include <cmath>

#include "checkpoint_folder.hpp"
#include "refusal.hpp"

namespace megamoe::testing {
namespace {

constexpr int kExperts = 3, kHidden = 64, kIntermediate = 96;
constexpr std::size_t kBytes = std::size_t{kHidden} * kIntermediate / 2, kScales = kBytes / 16;
const char* const kConfig =
    R"({"model_type":"deepseek_v4","n_routed_experts":3,"num_experts_per_tok":6,
    "hidden_size":64,"moe_intermediate_size":96,"expert_dtype":"fp4","swiglu_limit":10.0})";

std::vector<RawTensor> layer(const std::string& stem,
                             const std::string& type = "U8",
                             const std::string& scale_type = "U8") {
  std::vector<RawTensor> tensors;
  const std::int64_t per_element = type == "F4" ? 2 : 1;
  for (int expert = 0; expert < kExperts; ++expert) {
    unsigned seed = static_cast<unsigned>(expert) * 10;
    for (const char* name : {"w1", "w2", "w3"}) {
      const bool is_down = std::string(name) == "w2";
      const std::int64_t rows = is_down ? kHidden : kIntermediate,
                         columns = is_down ? kIntermediate : kHidden;
      const std::string matrix = stem + ".ffn.experts." + std::to_string(expert) + "." + name;
      tensors.push_back(
          {matrix + ".weight", type, {rows, columns / 2 * per_element}, pattern(kBytes, ++seed)});
      std::string scales = scale_pattern(kScales, ++seed);
      if (scale_type == "F32") {
        std::vector<float> floats;
        for (char byte : scales)
          floats.push_back(std::ldexp(1.0F, static_cast<unsigned char>(byte) - 127));
        scales = raw(floats);
      }
      tensors.push_back({matrix + ".scale", scale_type, {rows, columns / 32}, scales});
    }
  }
  tensors.push_back({stem + ".ffn.shared_experts.w1.weight", "F8_E4M3", {2, 2}, "abcd"});
  tensors.push_back({"mtp.0.ffn.experts.0.w1.weight", "U8", {2, 2}, "abcd"});
  return tensors;
}

void expect_canonical(const WeightSource& source) {
  const auto stored = layer("layers.0");
  ExpertScratch scratch;
  for (std::size_t expert = 0; expert < kExperts; ++expert) {
    const WeightView view = source.expert(static_cast<int>(expert), scratch);
    const RawTensor* of_expert =
        &stored[expert * 6];  // w1, its scale, w2, its scale, w3, its scale
    EXPECT_EQ(as_bytes(view.linear1, 2 * kBytes), of_expert[0].bytes + of_expert[4].bytes);
    EXPECT_EQ(as_bytes(view.linear1_scale, 2 * kScales), of_expert[1].bytes + of_expert[5].bytes);
    EXPECT_EQ(as_bytes(view.linear2, kBytes), of_expert[2].bytes);
    EXPECT_EQ(as_bytes(view.linear2_scale, kScales), of_expert[3].bytes);
    EXPECT_EQ(view.linear1_bias, nullptr);
    source.release(static_cast<int>(expert));
  }
}

TEST(DeepseekV4Layer, StacksGateOverUpInEveryStoredForm) {
  for (const char* type : {"U8", "I8", "F4"})
    for (const char* scale_type : {"U8", "F8_E8M0", "F32"}) {
      SCOPED_TRACE(std::string(type) + " " + scale_type);
      CheckpointFolder folder;
      folder.config(kConfig);
      folder.single(layer("layers.0", type, scale_type), 1);
      const auto source = folder.open(0);
      EXPECT_EQ(source->facts().experts, kExperts);
      EXPECT_EQ(source->facts().hidden, kHidden);
      EXPECT_EQ(source->facts().intermediate, kIntermediate);
      EXPECT_EQ(source->facts().suggested_topk, 6);
      EXPECT_EQ(source->facts().suggested_activation.kind, ActivationKind::kSwiglu);
      EXPECT_EQ(source->facts().suggested_activation.clamp, 10.0F);
      expect_canonical(*source);
    }
}

TEST(DeepseekV4Layer, TakesKeysUnderTextConfigAndAPrefixedName) {
  CheckpointFolder folder;
  folder.config(R"({"model_type":"deepseek_v4_1","hidden_size":1,"text_config":)" +
                std::string(kConfig) + "}");
  folder.single(layer("language_model.layers.0"));
  const auto source = folder.open(0);
  EXPECT_EQ(source->facts().suggested_topk, 6);
  EXPECT_EQ(source->facts().suggested_activation.clamp, 10.0F);
  expect_canonical(*source);
}

TEST(DeepseekV4Layer, NoLimitMeansNoClamp) {
  for (const char* limit : {R"(,"swiglu_limit":0)", R"(,"swiglu_limit":null)", ""}) {
    CheckpointFolder folder;
    folder.config(R"({"architectures":["DeepseekV4ForCausalLM"],"n_routed_experts":3)" +
                  std::string(limit) + "}");
    folder.single(layer("layers.0"));
    EXPECT_TRUE(std::isinf(folder.open(0)->facts().suggested_activation.clamp)) << limit;
  }
}

TEST(DeepseekV4Layer, RefusesF32ScalesThatAreNoPowersOfTwo) {
  for (const float bad : {3.0F, 0.0F, -1.0F, 1.0000001F, 0x1p-128F, 1e-45F, INFINITY, NAN}) {
    SCOPED_TRACE(bad);
    CheckpointFolder folder;
    folder.config(kConfig);
    auto tensors = layer("layers.0", "U8", "F32");
    std::memcpy(tensors[6 + 3].bytes.data() + 7 * sizeof(float), &bad, sizeof bad);  // expert 1, w2
    folder.single(tensors);
    const auto source = folder.open(0);
    ExpertScratch scratch;
    EXPECT_NO_THROW(source->expert(0, scratch));
    expect_says(refusal([&] { source->expert(1, scratch); }),
                "'layers.0.ffn.experts.1.w2.scale'",
                "index 7 is ",
                "power of two");
  }
}

TEST(DeepseekV4Layer, TakesTheLeastAndTheLargestPowersOfTwo) {
  CheckpointFolder folder;
  folder.config(kConfig);
  auto tensors = layer("layers.0", "U8", "F32");
  const float ends[] = {0x1p-127F, 0x1p-126F, 0x1p127F};
  std::memcpy(tensors[3].bytes.data(), ends, sizeof ends);
  folder.single(tensors);
  ExpertScratch scratch;
  const auto source = folder.open(0);
  const WeightView view = source->expert(0, scratch);
  EXPECT_EQ(std::vector<int>(view.linear2_scale, view.linear2_scale + 3),
            (std::vector<int>{0, 1, 254}));
}

TEST(DeepseekV4Layer, RefusesEachLie) {
  CheckpointFolder folder;
  folder.config(kConfig);
  const auto refused_with = [&](std::size_t which,
                                const std::string& type,
                                std::vector<std::int64_t> shape,
                                std::size_t bytes) {
    auto tensors = layer("layers.0");
    tensors[which] = {tensors[which].name, type, std::move(shape), std::string(bytes, '\0')};
    folder.single(tensors);
    return refusal([&] { folder.open(0); });
  };
  expect_says(refused_with(0, "F8_E4M3", {96, 64}, 6144),
              "'layers.0.ffn.experts.0.w1.weight'",
              "is F8_E4M3",
              "U8 or I8 or F4");
  expect_says(refused_with(4, "U8", {64, 48}, 3072),
              "experts.0.w3.weight'",
              "axis 0 (rows) is 64",
              "must be 96");
  expect_says(refused_with(14, "U8", {64, 47}, 3008),
              "experts.2.w2.weight'",
              "axis 1 (columns / 2) is 47",
              "must be 48");
  expect_says(refused_with(7, "BF16", {96, 2}, 384),
              "experts.1.w1.scale'",
              "is BF16",
              "U8 or F8_E8M0 or F32");
  expect_says(
      refused_with(7, "U8", {96, 4}, 384), "experts.1.w1.scale'", "axis 1", "is 4", "must be 2");
  expect_says(refused_with(0, "U8", {3072}, 3072), "experts.0.w1.weight'", "2 axes");
  expect_says(refused_with(0, "U8", {96, 33}, 3168), "hidden size 66");

  folder.single(layer("layers.0"));
  folder.config(R"({"model_type":"deepseek_v4","n_routed_experts":4})");
  expect_says(refusal([&] { folder.open(0); }), "has no tensor 'layers.0.ffn.experts.3.w1.weight'");
  folder.config(R"({"model_type":"deepseek_v4","n_routed_experts":2})");
  expect_says(refusal([&] { folder.open(0); }),
              "layers.0.ffn.experts.2.w1.weight",
              "says that there are 2 experts");
  folder.config(R"({"model_type":"deepseek_v4"})");
  expect_says(refusal([&] { folder.open(0); }), "does not say how many experts");
  folder.config(R"({"model_type":"deepseek_v4","n_routed_experts":3,"moe_intermediate_size":128})");
  expect_says(refusal([&] { folder.open(0); }), "intermediate size is 128", "makes it 96");
}

}  // namespace
}  // namespace megamoe::testing
