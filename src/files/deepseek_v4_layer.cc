#include <cstring>

#include "files/scale_bytes.hpp"
#include "files/split_experts.hpp"

namespace megamoe {
namespace {

constexpr SplitNames kNames = {".ffn.experts.", "w1", "w3", "w2", ".scale"};

bool always_has_scale(const TensorView&) {
  return true;
}

class DeepseekV4Weights : public WeightSource {
 public:
  DeepseekV4Weights(WeightFacts facts, std::vector<SplitExpert> experts)
      : WeightSource(std::move(facts)), experts_(std::move(experts)) {}

  WeightView expert(int expert, ExpertScratch& scratch) const override {
    const SplitExpert& from = experts_.at(static_cast<std::size_t>(expert));
    from.require_whole();
    const std::int64_t groups = std::int64_t{facts().intermediate} * (facts().hidden / kGroupSize);
    const auto half = from.gate.weight.bytes.size();
    scratch.linear1.resize(2 * half);
    std::memcpy(scratch.linear1.data(), from.gate.weight.bytes.data(), half);
    std::memcpy(scratch.linear1.data() + half, from.up.weight.bytes.data(), half);
    scratch.linear1_scale.resize(static_cast<std::size_t>(2 * groups));
    copy_scale_bytes(from.gate.scale, 0, groups, scratch.linear1_scale.data());
    copy_scale_bytes(from.up.scale, 0, groups, scratch.linear1_scale.data() + groups);

    WeightView view;
    view.linear1 = scratch.linear1.data();
    view.linear1_scale = scratch.linear1_scale.data();
    view.linear2 = from.down.weight.bytes.data();
    view.linear2_scale = scale_bytes(from.down.scale, 0, groups, scratch.linear2_scale);
    return view;
  }

  void release(int expert) const override {
    experts_.at(static_cast<std::size_t>(expert)).release();
  }

 private:
  std::vector<SplitExpert> experts_;
};

void check(const SplitMatrix& matrix, int rows, int columns) {
  require_type(matrix.weight, {DataType::kU8, DataType::kI8, DataType::kF4});
  const bool is_element = matrix.weight.type == DataType::kF4;
  require_shape(matrix.weight,
                {{"rows", rows},
                 {is_element ? "columns" : "columns / 2", is_element ? columns : columns / 2}});
  require_scale_type(matrix.scale);
  require_shape(matrix.scale, {{"rows", rows}, {"columns / 32", columns / kGroupSize}});
}

}  // namespace

std::unique_ptr<WeightSource> open_deepseek_v4_layer(Checkpoint& checkpoint,
                                                     const WeightOptions& options) {
  WeightFacts facts = checkpoint_facts(checkpoint, options);
  std::vector<SplitExpert> experts =
      open_split_experts(checkpoint, options, kNames, always_has_scale, facts);
  for (const SplitExpert& expert : experts) {
    check(expert.gate, facts.intermediate, facts.hidden);
    check(expert.up, facts.intermediate, facts.hidden);
    check(expert.down, facts.hidden, facts.intermediate);
  }
  if (checkpoint.config().swiglu_limit)
    facts.suggested_activation.clamp = *checkpoint.config().swiglu_limit;
  return std::make_unique<DeepseekV4Weights>(std::move(facts), std::move(experts));
}

}  // namespace megamoe
