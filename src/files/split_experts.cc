#include "files/split_experts.hpp"

#include "files/layer_extents.hpp"

namespace megamoe {
namespace {

SplitMatrix open_matrix(Checkpoint& checkpoint,
                        const std::string& stem,
                        std::string_view scale_suffix,
                        bool (*has_scale)(const TensorView&)) {
  SplitMatrix matrix;
  matrix.weight = checkpoint.get(stem + ".weight");
  require(matrix.weight.shape.size() == 2,
          ErrorCode::kBadFile,
          matrix.weight.where(),
          " has shape ",
          to_string(matrix.weight.shape),
          "; it must have 2 axes: row, column");
  if (has_scale(matrix.weight)) matrix.scale = checkpoint.get(stem + std::string(scale_suffix));
  return matrix;
}

template <class Visit>
void for_each_tensor(const SplitExpert& expert, Visit visit) {
  for (const SplitMatrix* matrix : {&expert.gate, &expert.up, &expert.down})
    for (const TensorView* tensor : {&matrix->weight, &matrix->scale})
      if (tensor->file) visit(*tensor);
}

}  // namespace

void SplitExpert::require_whole() const {
  for_each_tensor(*this, [](const TensorView& tensor) { tensor.file->require_whole(); });
}

void SplitExpert::release() const {
  for_each_tensor(*this, [](const TensorView& tensor) { tensor.file->release(tensor.bytes); });
}

std::int64_t elements_of_row(const TensorView& weight, std::int64_t stored) {
  return weight.type == DataType::kU8 || weight.type == DataType::kI8 ? 2 * stored : stored;
}

std::vector<SplitExpert> open_split_experts(Checkpoint& checkpoint,
                                            const WeightOptions& options,
                                            const SplitNames& names,
                                            bool (*has_scale)(const TensorView&),
                                            WeightFacts& facts) {
  const ModelConfig& config = checkpoint.config();
  const std::string first = std::string(names.experts) + "0." + std::string(names.gate) + ".weight";
  const std::string layer = checkpoint.stem_of(options.layer, first) + std::string(names.experts);
  require(config.experts.has_value(),
          ErrorCode::kBadFile,
          config.path,
          " does not say how many experts there are");
  facts.experts = *config.experts;
  const auto stem = [&](int expert, std::string_view matrix) {
    return layer + std::to_string(expert) + "." + std::string(matrix);
  };
  require(!checkpoint.has(stem(facts.experts, names.gate) + ".weight"),
          ErrorCode::kBadFile,
          checkpoint.path(),
          " has a tensor ",
          stem(facts.experts, names.gate),
          ".weight, but ",
          config.path,
          " says that there are ",
          facts.experts,
          " experts");

  std::vector<SplitExpert> experts;
  for (int expert = 0; expert < facts.experts; ++expert) {
    const auto open = [&](std::string_view matrix) {
      return open_matrix(checkpoint, stem(expert, matrix), names.scale, has_scale);
    };
    experts.push_back({open(names.gate), open(names.up), open(names.down)});
  }
  const TensorView& gate = experts.front().gate.weight;
  facts.intermediate = checked_width(gate, "the intermediate size", gate.shape[0]);
  require(gate.shape[1] <= kMaxLinearWidth,
          ErrorCode::kBadFile,
          gate.where(),
          " has ",
          gate.shape[1],
          " columns; the most is ",
          kMaxLinearWidth);
  facts.hidden = checked_width(gate, "the hidden size", elements_of_row(gate, gate.shape[1]));
  require_config_agrees(config, "hidden size", config.hidden, facts.hidden, gate);
  require_config_agrees(config, "intermediate size", config.intermediate, facts.intermediate, gate);
  return experts;
}

}  // namespace megamoe
