#include "files/weight_source.hpp"

#include <filesystem>

#include "files/checkpoint_layer.hpp"
#include "files/layer_file.hpp"

namespace megamoe {
namespace {

std::unique_ptr<WeightSource> open_checkpoint(const std::string& path,
                                              const WeightOptions& options) {
  Checkpoint checkpoint(path);
  switch (checkpoint.config().family) {
    case ModelFamily::kGptOss: return open_gpt_oss_layer(checkpoint, options);
    case ModelFamily::kDeepseekV4: return open_deepseek_v4_layer(checkpoint, options);
    case ModelFamily::kDeepseekV3:
    case ModelFamily::kQwen3Moe: return open_requantised_layer(checkpoint, options);
  }
  throw Error(ErrorCode::kInternal, "a model family has no reader");
}

}  // namespace

std::unique_ptr<WeightSource> open_weights(const std::string& path, const WeightOptions& options) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored) || path.ends_with(".json"))
    return open_checkpoint(path, options);
  const SafetensorsFile file(path);
  if (!is_layer_file(file)) return open_checkpoint(path, options);
  require(!options.layer.has_value(),
          ErrorCode::kInvalidArgument,
          path,
          " is a layer file and holds one layer; --layer ",
          options.layer.value_or(0),
          " is for checkpoints");
  return open_layer_file(file);
}

}  // namespace megamoe
