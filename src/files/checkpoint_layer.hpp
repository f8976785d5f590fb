#pragma once

#include <memory>
#include <optional>
#include <string>

#include "files/checkpoint.hpp"
#include "files/weight_source.hpp"

namespace megamoe {

// One layer of a checkpoint, by family. Each finds its tensors by their published names, takes the
// sizes from their shapes, and refuses a config.json that says otherwise.

/// gpt-oss: MXFP4 blocks of all experts in one tensor, gate and up rows alternating, with biases;
/// SwiGLU-OAI.
std::unique_ptr<WeightSource> open_gpt_oss_layer(Checkpoint& checkpoint,
                                                 const WeightOptions& options);

/// DeepSeek-V4: MXFP4, w1 (gate), w3 (up) and w2 (down) of each expert apart; clamp from
/// swiglu_limit.
std::unique_ptr<WeightSource> open_deepseek_v4_layer(Checkpoint& checkpoint,
                                                     const WeightOptions& options);

/// DeepSeek-V3, Kimi-K2 (FP8 with an F32 scale per block) and Qwen3-MoE (bf16): quantised to MXFP4
/// expert by expert.
std::unique_ptr<WeightSource> open_requantised_layer(Checkpoint& checkpoint,
                                                     const WeightOptions& options);

/// What every family has in common; `activation` stays to be set.
WeightFacts checkpoint_facts(const Checkpoint& checkpoint, const WeightOptions& options);

/// Throws if config.json has another number than the tensors.
void require_config_agrees(const ModelConfig& config,
                           std::string_view meaning,
                           const std::optional<int>& configured,
                           int actual,
                           const TensorView& tensor);

}  // namespace megamoe
