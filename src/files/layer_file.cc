#include "files/layer_file.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "files/bias_values.hpp"
#include "files/layer_extents.hpp"
#include "files/printable.hpp"
#include "numerics/ue8m0.hpp"

namespace megamoe {
namespace {

constexpr std::array<std::string_view, 6> kNames = {
    "l1.weight", "l1.scale", "l1.bias", "l2.weight", "l2.scale", "l2.bias"};

/// A weight matrix of every expert: `rows` x `columns` elements, and how its scales are stored.
struct Linear {
  TensorView weight;
  TensorView scale;
  int rows = 0;
  int columns = 0;
  bool has_square_scales = false;  // one per 32x32 block instead of per row and 32
};

std::int64_t columns_of(const TensorView& weight) {
  return weight.type == DataType::kF4 ? weight.shape[2] : weight.shape[2] * 2;
}

/// How a sentence about this weight names its last axis.
std::int64_t stored_columns(const TensorView& weight, std::int64_t columns) {
  return weight.type == DataType::kF4 ? columns : columns / 2;
}

const TensorView& get_weight(const SafetensorsFile& file, std::string_view name) {
  const TensorView& weight = file.get(name);
  require_type(weight, {DataType::kU8, DataType::kF4});
  require(weight.shape.size() == 3,
          ErrorCode::kBadFile,
          weight.where(),
          " has shape ",
          to_string(weight.shape),
          "; it must have 3 axes: expert, row, column");
  return weight;
}

Linear open_linear(const SafetensorsFile& file,
                   const TensorView& weight,
                   std::string_view scale_name,
                   int experts,
                   int columns) {
  Linear linear{weight, file.get(scale_name), static_cast<int>(weight.shape[1]), columns, false};
  require_type(linear.scale, {DataType::kU8, DataType::kF8E8M0});
  const std::vector<std::int64_t>& shape = linear.scale.shape;
  linear.has_square_scales = shape.size() == 3 && shape[1] == linear.rows / kGroupSize;
  if (linear.has_square_scales)
    require_shape(linear.scale,
                  {{"experts", experts},
                   {"rows / 32", linear.rows / kGroupSize},
                   {"columns / 32", columns / kGroupSize}});
  else
    require_shape(
        linear.scale,
        {{"experts", experts}, {"rows", linear.rows}, {"columns / 32", columns / kGroupSize}});
  return linear;
}

const TensorView* open_bias(const SafetensorsFile& file,
                            std::string_view name,
                            int experts,
                            int rows) {
  const TensorView* bias = file.find(name);
  if (bias == nullptr) return nullptr;
  require_type(*bias, {DataType::kF32, DataType::kBF16});
  require_shape(*bias, {{"experts", experts}, {"rows", rows}});
  return bias;
}

class LayerFileWeights : public WeightSource {
 public:
  LayerFileWeights(WeightFacts facts,
                   Linear linear1,
                   Linear linear2,
                   const TensorView* bias1,
                   const TensorView* bias2)
      : WeightSource(std::move(facts)), linear1_(std::move(linear1)), linear2_(std::move(linear2)) {
    if (bias1 != nullptr) bias1_ = *bias1;
    if (bias2 != nullptr) bias2_ = *bias2;
  }

  WeightView expert(int expert, ExpertScratch& scratch) const override {
    linear1_.weight.file->require_whole();
    WeightView view;
    view.linear1 = linear1_.weight.slice(expert).data();
    view.linear2 = linear2_.weight.slice(expert).data();
    view.linear1_scale = scales(linear1_, expert, scratch.linear1_scale);
    view.linear2_scale = scales(linear2_, expert, scratch.linear2_scale);
    if (facts().has_biases) {
      view.linear1_bias = biases(bias1_, expert, linear1_.rows, scratch.linear1_bias);
      view.linear2_bias = biases(bias2_, expert, linear2_.rows, scratch.linear2_bias);
    }
    return view;
  }

  void release(int expert) const override {
    const MappedFile& file = *linear1_.weight.file;
    for (const TensorView* tensor :
         {&linear1_.weight, &linear1_.scale, &linear2_.weight, &linear2_.scale})
      file.release(tensor->slice(expert));
  }

 private:
  static const std::uint8_t* scales(const Linear& linear,
                                    int expert,
                                    std::vector<std::uint8_t>& scratch) {
    const std::uint8_t* stored = linear.scale.slice(expert).data();
    if (!linear.has_square_scales) return stored;
    const auto row_bytes = static_cast<std::size_t>(linear.columns / kGroupSize);
    scratch.resize(static_cast<std::size_t>(linear.rows) * row_bytes);
    for (std::size_t row = 0; row < static_cast<std::size_t>(linear.rows); ++row)
      std::memcpy(
          scratch.data() + row * row_bytes, stored + row / kGroupSize * row_bytes, row_bytes);
    return scratch.data();
  }

  static const float* biases(const TensorView& bias,
                             int expert,
                             int rows,
                             std::vector<float>& scratch) {
    if (bias.file) return bias_values(bias, std::int64_t{expert} * rows, rows, scratch);
    scratch.assign(static_cast<std::size_t>(rows), 0.0F);
    return scratch.data();
  }

  Linear linear1_;
  Linear linear2_;
  TensorView bias1_;  // without a file: absent
  TensorView bias2_;
};

}  // namespace

bool is_layer_file(const SafetensorsFile& file) {
  return file.find("l1.weight") != nullptr;
}

std::unique_ptr<WeightSource> open_layer_file(const SafetensorsFile& file) {
  // A misspelt bias would otherwise be a wrong result without a word.
  for (const TensorView& tensor : file.tensors())
    require((!tensor.name.starts_with("l1.") && !tensor.name.starts_with("l2.")) ||
                std::find(kNames.begin(), kNames.end(), tensor.name) != kNames.end(),
            ErrorCode::kBadFile,
            tensor.where(),
            " is unknown; of l1. and l2. a layer file may have weight, scale and bias");

  const TensorView& weight1 = get_weight(file, "l1.weight");
  const TensorView& weight2 = get_weight(file, "l2.weight");
  WeightFacts facts;
  facts.description = file.path();
  facts.experts = checked_experts(weight1, weight1.shape[0]);
  facts.hidden = checked_width(weight1, "the hidden size", columns_of(weight1));
  require(weight1.shape[1] % 2 == 0,
          ErrorCode::kBadFile,
          weight1.where(),
          " has ",
          weight1.shape[1],
          " rows an expert; gate and up are equally many, so it must be even");
  facts.intermediate = checked_width(weight1, "the intermediate size", weight1.shape[1] / 2);
  require(columns_of(weight2) % kGroupSize == 0,
          ErrorCode::kBadFile,
          weight2.where(),
          " has ",
          columns_of(weight2),
          " columns; they must be a multiple of 32");
  require_shape(weight2,
                {{"experts", facts.experts},
                 {"hidden size", facts.hidden},
                 {weight2.type == DataType::kF4 ? "intermediate size" : "intermediate size / 2",
                  stored_columns(weight2, facts.intermediate)}});

  Linear linear1 = open_linear(file, weight1, "l1.scale", facts.experts, facts.hidden);
  Linear linear2 = open_linear(file, weight2, "l2.scale", facts.experts, facts.intermediate);
  const TensorView* bias1 = open_bias(file, "l1.bias", facts.experts, linear1.rows);
  const TensorView* bias2 = open_bias(file, "l2.bias", facts.experts, linear2.rows);
  facts.has_biases = bias1 != nullptr || bias2 != nullptr;
  return std::make_unique<LayerFileWeights>(
      std::move(facts), std::move(linear1), std::move(linear2), bias1, bias2);
}

}  // namespace megamoe
