#include <cstring>

#include "files/bias_values.hpp"
#include "files/checkpoint_layer.hpp"
#include "files/layer_extents.hpp"
#include "files/scale_bytes.hpp"

namespace megamoe {
namespace {

constexpr int kBlockBytes = kGroupSize / 2;  // the last axis of blocks: 32 codes
constexpr float kAlpha = 1.702F;             // not in config.json; the model's code has it
constexpr float kDefaultLimit = 7.0F;

struct Tensors {
  TensorView gate_up, gate_up_scales, gate_up_bias;
  TensorView down, down_scales, down_bias;
};

class GptOssWeights : public WeightSource {
 public:
  GptOssWeights(WeightFacts facts, Tensors tensors)
      : WeightSource(std::move(facts)), tensors_(std::move(tensors)) {}

  WeightView expert(int expert, ExpertScratch& scratch) const override {
    for (const TensorView* tensor : all())
      tensor->file->require_whole();
    const std::int64_t rows = 2 * std::int64_t{facts().intermediate};
    const std::int64_t row_groups = facts().hidden / kGroupSize;
    const std::int64_t groups1 = rows * row_groups;
    const std::int64_t groups2 = std::int64_t{facts().hidden} * (facts().intermediate / kGroupSize);

    unweave(tensors_.gate_up.slice(expert).data(), rows, row_groups * kBlockBytes, scratch.linear1);
    unweave(scale_bytes(tensors_.gate_up_scales, expert * groups1, groups1, scratch.linear2_scale),
            rows,
            row_groups,
            scratch.linear1_scale);
    const float* bias = bias_values(tensors_.gate_up_bias, expert * rows, rows, scratch.row);
    scratch.linear1_bias.resize(static_cast<std::size_t>(rows));
    for (std::int64_t row = 0; row < rows; ++row)
      scratch.linear1_bias[static_cast<std::size_t>(half_of(row, rows))] = bias[row];

    WeightView view;
    view.linear1 = scratch.linear1.data();
    view.linear1_scale = scratch.linear1_scale.data();
    view.linear1_bias = scratch.linear1_bias.data();
    view.linear2 = tensors_.down.slice(expert).data();
    view.linear2_scale =
        scale_bytes(tensors_.down_scales, expert * groups2, groups2, scratch.linear2_scale);
    view.linear2_bias = bias_values(tensors_.down_bias,
                                    std::int64_t{expert} * facts().hidden,
                                    facts().hidden,
                                    scratch.linear2_bias);
    return view;
  }

  void release(int expert) const override {
    for (const TensorView* tensor : all())
      tensor->file->release(tensor->slice(expert));
  }

 private:
  /// Where stored row gate 0, up 0, gate 1, up 1, ... belongs: gates first, then ups.
  static std::int64_t half_of(std::int64_t row, std::int64_t rows) {
    return row % 2 * (rows / 2) + row / 2;
  }

  static void unweave(const std::uint8_t* stored,
                      std::int64_t rows,
                      std::int64_t row_bytes,
                      std::vector<std::uint8_t>& out) {
    out.resize(static_cast<std::size_t>(rows * row_bytes));
    for (std::int64_t row = 0; row < rows; ++row)
      std::memcpy(out.data() + half_of(row, rows) * row_bytes,
                  stored + row * row_bytes,
                  static_cast<std::size_t>(row_bytes));
  }

  std::array<const TensorView*, 6> all() const {
    return {&tensors_.gate_up,
            &tensors_.gate_up_scales,
            &tensors_.gate_up_bias,
            &tensors_.down,
            &tensors_.down_scales,
            &tensors_.down_bias};
  }

  Tensors tensors_;
};

void check(const Tensors& tensors, const ModelConfig& config, WeightFacts& facts) {
  for (const TensorView* blocks : {&tensors.gate_up, &tensors.down}) {
    require_type(*blocks, {DataType::kU8});
    require(blocks->shape.size() == 4,
            ErrorCode::kBadFile,
            blocks->where(),
            " has shape ",
            to_string(blocks->shape),
            "; it must have 4 axes: expert, row, group, byte");
  }
  for (const TensorView* scales : {&tensors.gate_up_scales, &tensors.down_scales})
    require_scale_type(*scales);
  for (const TensorView* bias : {&tensors.gate_up_bias, &tensors.down_bias})
    require_type(*bias, {DataType::kBF16, DataType::kF32});

  const TensorView& gate_up = tensors.gate_up;
  facts.experts = checked_experts(gate_up, gate_up.shape[0]);
  require(gate_up.shape[1] % 2 == 0,
          ErrorCode::kBadFile,
          gate_up.where(),
          " has ",
          gate_up.shape[1],
          " rows an expert; gate and up alternate, so it must be even");
  facts.intermediate = checked_width(gate_up, "the intermediate size", gate_up.shape[1] / 2);
  require(gate_up.shape[2] <= kMaxLinearWidth,
          ErrorCode::kBadFile,
          gate_up.where(),
          " has ",
          gate_up.shape[2],
          " groups a row; the most is ",
          kMaxLinearWidth / kGroupSize);
  facts.hidden = checked_width(gate_up, "the hidden size", gate_up.shape[2] * kGroupSize);
  const Axis experts{"experts", facts.experts};
  const Axis rows1{"rows", 2 * std::int64_t{facts.intermediate}};
  const Axis rows2{"hidden size", facts.hidden};
  const Axis groups1{"hidden size / 32", facts.hidden / kGroupSize};
  const Axis groups2{"intermediate size / 32", facts.intermediate / kGroupSize};
  const Axis bytes{"bytes of a group", kBlockBytes};
  require_shape(gate_up, {experts, rows1, groups1, bytes});
  require_shape(tensors.gate_up_scales, {experts, rows1, groups1});
  require_shape(tensors.gate_up_bias, {experts, rows1});
  require_shape(tensors.down, {experts, rows2, groups2, bytes});
  require_shape(tensors.down_scales, {experts, rows2, groups2});
  require_shape(tensors.down_bias, {experts, rows2});
  require_config_agrees(config, "number of experts", config.experts, facts.experts, gate_up);
  require_config_agrees(config, "hidden size", config.hidden, facts.hidden, gate_up);
  require_config_agrees(
      config, "intermediate size", config.intermediate, facts.intermediate, gate_up);
}

}  // namespace

std::unique_ptr<WeightSource> open_gpt_oss_layer(Checkpoint& checkpoint,
                                                 const WeightOptions& options) {
  const std::string experts =
      checkpoint.stem_of(options.layer, ".mlp.experts.gate_up_proj_blocks") + ".mlp.experts.";
  const auto get = [&](const char* name) { return checkpoint.get(experts + name); };
  Tensors tensors{get("gate_up_proj_blocks"),
                  get("gate_up_proj_scales"),
                  get("gate_up_proj_bias"),
                  get("down_proj_blocks"),
                  get("down_proj_scales"),
                  get("down_proj_bias")};
  WeightFacts facts = checkpoint_facts(checkpoint, options);
  check(tensors, checkpoint.config(), facts);
  facts.has_biases = true;
  facts.suggested_activation.kind = ActivationKind::kSwigluOai;
  facts.suggested_activation.alpha = kAlpha;
  facts.suggested_activation.limit = checkpoint.config().swiglu_limit.value_or(kDefaultLimit);
  return std::make_unique<GptOssWeights>(std::move(facts), std::move(tensors));
}

}  // namespace megamoe
