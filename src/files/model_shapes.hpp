#pragma once

#include <array>
#include <string_view>

namespace megamoe {

/// The sizes of a published model's expert layer.
struct ModelShape {
  std::string_view name;
  int hidden;
  int intermediate;
  int experts;
  int topk;
};

inline constexpr std::array kModelShapes = {
    ModelShape{"flash", 4096, 2048, 256, 6},         // DeepSeek-V4-Flash
    ModelShape{"pro", 7168, 3072, 384, 6},           // DeepSeek-V4-Pro
    ModelShape{"v3", 7168, 2048, 256, 8},            // DeepSeek-V3
    ModelShape{"gpt-oss-120b", 2880, 2880, 128, 4},  //
    ModelShape{"qwen3-235b", 4096, 1536, 128, 8},    //
    ModelShape{"qwen3-30b", 2048, 768, 128, 8},      //
    ModelShape{"kimi-k2", 7168, 2048, 384, 8},       //
};

/// Null for a name that is not in the table.
constexpr const ModelShape* find_model_shape(std::string_view name) {
  for (const ModelShape& shape : kModelShapes)
    if (shape.name == name) return &shape;
  return nullptr;
}

}  // namespace megamoe
