#include <gtest/gtest.h>

#include <cmath>

#include "checkpoint_folder.hpp"
#include "numerics/float8.hpp"
#include "refusal.hpp"

namespace megamoe::testing {
namespace {

constexpr int kExperts = 2, kHidden = 160,
              kIntermediate = 192;  // neither a multiple of the 128 of a block
constexpr std::size_t kElements = std::size_t{kHidden} * kIntermediate;

struct Matrix {
  const char* name;
  int rows, columns;
};
constexpr Matrix kMatrices[] = {{"gate_proj", kIntermediate, kHidden},
                                {"up_proj", kIntermediate, kHidden},
                                {"down_proj", kHidden, kIntermediate}};

/// A layer and, apart from it, the values that it means.
struct Layer {
  std::vector<RawTensor> tensors;
  std::vector<std::vector<float>> values;  // expert by expert: gate, up, down
};

Layer fp8_layer(const std::string& stem) {
  Layer layer;
  for (int expert = 0; expert < kExperts; ++expert)
    for (const Matrix& matrix : kMatrices) {
      const auto seed = static_cast<unsigned>(layer.values.size());
      std::string codes = pattern(kElements, seed);
      for (char& code : codes)
        if ((code & 0x7F) == 0x7F) code = 0;  // no NaN
      const int block_rows = (matrix.rows + 127) / 128,
                block_columns = (matrix.columns + 127) / 128;
      std::vector<float> scales;
      for (int i = 0; i < block_rows * block_columns; ++i)
        scales.push_back(0.001F * static_cast<float>(i + 1));
      std::vector<float> values;
      for (int row = 0; row < matrix.rows; ++row)
        for (int column = 0; column < matrix.columns; ++column) {
          const auto code = static_cast<std::uint8_t>(codes[values.size()]);
          values.push_back(
              to_float(Float8E4M3{code}) *
              scales[static_cast<std::size_t>(row / 128 * block_columns + column / 128)]);
        }
      const std::string name = stem + ".mlp.experts." + std::to_string(expert) + "." + matrix.name;
      layer.tensors.push_back({name + ".weight", "F8_E4M3", {matrix.rows, matrix.columns}, codes});
      layer.tensors.push_back(
          {name + ".weight_scale_inv", "F32", {block_rows, block_columns}, raw(scales)});
      layer.values.push_back(values);
    }
  return layer;
}

Layer bf16_layer(const std::string& stem) {
  Layer layer;
  for (int expert = 0; expert < kExperts; ++expert)
    for (const Matrix& matrix : kMatrices) {
      std::vector<std::uint16_t> stored;
      std::vector<float> values;
      for (std::size_t i = 0; i < kElements; ++i) {
        const float value = std::sin(static_cast<float>(i * (layer.values.size() + 3))) * 0.05F;
        stored.push_back(to_bfloat16(value).bits);
        values.push_back(to_float(Bfloat16{stored.back()}));
      }
      const std::string name = stem + ".mlp.experts." + std::to_string(expert) + "." + matrix.name;
      layer.tensors.push_back(
          {name + ".weight", "BF16", {matrix.rows, matrix.columns}, raw(stored)});
      layer.values.push_back(values);
    }
  return layer;
}

/// Each matrix must be what the quantiser makes of the values, and each value must be near.
void expect_quantised(const std::vector<float>& values,
                      int columns,
                      const std::uint8_t* packed,
                      const std::uint8_t* scales) {
  std::vector<std::uint8_t> expected_packed(values.size() / 2), expected_scales(values.size() / 32);
  for (std::size_t row = 0; row < values.size() / static_cast<std::size_t>(columns); ++row) {
    const std::size_t first = row * static_cast<std::size_t>(columns);
    quantize_row_to_mxfp4(values.data() + first,
                          columns,
                          expected_packed.data() + first / 2,
                          expected_scales.data() + first / 32);
  }
  EXPECT_EQ(as_bytes(packed, values.size() / 2),
            as_bytes(expected_packed.data(), values.size() / 2));
  EXPECT_EQ(as_bytes(scales, values.size() / 32),
            as_bytes(expected_scales.data(), values.size() / 32));
}

void expect_canonical(const WeightSource& source, const Layer& layer) {
  EXPECT_TRUE(source.facts().is_requantised);
  EXPECT_EQ(source.facts().hidden, kHidden);
  EXPECT_EQ(source.facts().intermediate, kIntermediate);
  ExpertScratch scratch;
  for (std::size_t expert = 0; expert < kExperts; ++expert) {
    const WeightView view = source.expert(static_cast<int>(expert), scratch);
    const std::vector<float>* values = &layer.values[3 * expert];
    expect_quantised(values[0], kHidden, view.linear1, view.linear1_scale);
    expect_quantised(
        values[1], kHidden, view.linear1 + kElements / 2, view.linear1_scale + kElements / 32);
    expect_quantised(values[2], kIntermediate, view.linear2, view.linear2_scale);
    source.release(static_cast<int>(expert));
  }
  double norm = 0;
  for (const auto& matrix : layer.values)
    for (const float value : matrix)
      norm += static_cast<double>(value) * value;
  EXPECT_NEAR(scratch.error.squared_norm / norm, 1, 1e-9);
  EXPECT_GT(scratch.error.relative_l2(), 0.01);
  EXPECT_LT(scratch.error.relative_l2(), 0.2);
}

TEST(RequantisedLayer, ReadsFp8BlocksWithRaggedEdges) {
  CheckpointFolder folder;
  folder.config(
      R"({"model_type":"deepseek_v3","n_routed_experts":2,"num_experts_per_tok":8,"first_k_dense_replace":3,
      "quantization_config":{"weight_block_size":[128,128]}})");
  const Layer layer = fp8_layer("model.layers.3");
  folder.single(layer.tensors, 1);
  expect_canonical(*folder.open(3, true), layer);
}

TEST(RequantisedLayer, ReadsKimiK2ByItsOwnName) {
  CheckpointFolder folder;
  folder.config(R"({"model_type":"kimi_k2","n_routed_experts":2,"first_k_dense_replace":1})");
  const Layer layer = fp8_layer("model.layers.1");
  folder.single(layer.tensors);
  expect_canonical(*folder.open(1, true), layer);
}

TEST(RequantisedLayer, ReadsBf16) {
  CheckpointFolder folder;
  folder.config(
      R"({"model_type":"qwen3_moe","num_experts":2,"num_experts_per_tok":8,"hidden_size":160,"moe_intermediate_size":192})");
  const Layer layer = bf16_layer("model.layers.0");
  folder.sharded(layer.tensors, 3);
  const auto source = folder.open(0, true);
  EXPECT_EQ(source->facts().suggested_topk, 8);
  expect_canonical(*source, layer);
}

TEST(RequantisedLayer, OnlyOnRequest) {
  CheckpointFolder folder;
  folder.config(R"({"model_type":"qwen3_moe","num_experts":2})");
  folder.single(bf16_layer("model.layers.0").tensors);
  expect_says(refusal([&] { folder.open(0); }), "layer 0 of", "is BF16, not MXFP4", "--requantise");
}

TEST(RequantisedLayer, RefusesEachLie) {
  CheckpointFolder folder;
  folder.config(R"({"model_type":"deepseek_v3","n_routed_experts":2})");
  const auto refused_with = [&](std::size_t which,
                                const std::string& type,
                                std::vector<std::int64_t> shape,
                                std::size_t bytes) {
    auto tensors = fp8_layer("model.layers.3").tensors;
    tensors[which] = {tensors[which].name, type, std::move(shape), std::string(bytes, '\0')};
    folder.single(tensors);
    return refusal([&] { folder.open(3, true); });
  };
  expect_says(refused_with(0, "I32", {192, 160}, 122'880),
              "experts.0.gate_proj.weight'",
              "is I32",
              "F8_E4M3 or BF16");
  expect_says(refused_with(1, "F32", {2, 1}, 8),
              "gate_proj.weight_scale_inv'",
              "axis 1 (blocks of columns) is 1",
              "must be 2");
  expect_says(
      refused_with(1, "BF16", {2, 2}, 8), "gate_proj.weight_scale_inv'", "is BF16", "must be F32");
  expect_says(refused_with(10, "F8_E4M3", {160, 160}, 25'600),
              "experts.1.down_proj.weight'",
              "axis 1 (columns) is 160");
  for (const char* block : {"[128]", "[0,128]", "[128,\"x\"]", "7"}) {
    folder.config(
        R"({"model_type":"deepseek_v3","n_routed_experts":2,"quantization_config":{"weight_block_size":)" +
        std::string(block) + "}}");
    expect_says(refusal([&] { folder.open(3, true); }), "config.json", "weight_block_size");
  }
}

TEST(RequantisedLayer, ANanIsMarkedInItsGroupsScale) {
  CheckpointFolder folder;
  folder.config(R"({"model_type":"deepseek_v3","n_routed_experts":2})");
  Layer layer = fp8_layer("model.layers.3");
  layer.tensors[0].bytes[40] = 0x7F;  // gate of expert 0, row 0, group 1
  folder.single(layer.tensors);
  ExpertScratch scratch;
  const auto source = folder.open(3, true);
  const WeightView view = source->expert(0, scratch);
  EXPECT_NE(view.linear1_scale[0], 255);
  EXPECT_EQ(view.linear1_scale[1], 255);
  EXPECT_TRUE(std::isfinite(scratch.error.relative_l2()));
}

}  // namespace
}  // namespace megamoe::testing
