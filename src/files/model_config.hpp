#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace megamoe {

/// How a checkpoint names and stores its experts.
enum class ModelFamily : std::uint8_t {
  kGptOss,      // MXFP4, all experts in one tensor, gate and up rows alternate, biases
  kDeepseekV4,  // MXFP4, a tensor per expert and matrix
  kDeepseekV3,  // FP8 with a scale per block; Kimi-K2 too
  kQwen3Moe,    // bf16
};

/// What a config.json says that matters for routed experts. A field that it lacks is empty.
struct ModelConfig {
  std::string path;
  ModelFamily family = ModelFamily::kGptOss;
  std::string model_type;
  std::optional<int> experts, topk, hidden, intermediate;
  int first_expert_layer = 0;         // first_k_dense_replace
  std::optional<float> swiglu_limit;  // empty for null and 0, which mean none
  int scale_block_rows = 128;         // quantization_config.weight_block_size
  int scale_block_columns = 128;
};

/// Reads config.json. Its keys may be nested under text_config. Throws for a model that is not
/// known, with those that are.
ModelConfig read_model_config(const std::string& path);

}  // namespace megamoe
