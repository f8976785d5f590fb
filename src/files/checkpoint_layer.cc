#include "files/checkpoint_layer.hpp"

namespace megamoe {

WeightFacts checkpoint_facts(const Checkpoint& checkpoint, const WeightOptions& options) {
  WeightFacts facts;
  facts.files = checkpoint.files();
  facts.description = sentence("layer ",
                               options.layer.value_or(0),
                               " of ",
                               checkpoint.path(),
                               " (",
                               checkpoint.config().model_type,
                               ")");
  facts.suggested_topk = checkpoint.config().topk.value_or(0);
  return facts;
}

void require_config_agrees(const ModelConfig& config,
                           std::string_view meaning,
                           const std::optional<int>& configured,
                           int actual,
                           const TensorView& tensor) {
  require(!configured || *configured == actual,
          ErrorCode::kBadFile,
          config.path,
          " says that the ",
          meaning,
          " is ",
          configured.value_or(0),
          "; ",
          tensor.where(),
          " with shape ",
          to_string(tensor.shape),
          " makes it ",
          actual);
}

}  // namespace megamoe
