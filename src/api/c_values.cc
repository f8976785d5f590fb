#include "api/c_values.hpp"

namespace megamoe {
namespace {

std::string text_or(const char* text, const char* otherwise) {
  return text == nullptr ? otherwise : text;
}

}  // namespace

Problem problem_of(const megamoe_problem* given) {
  const auto c = read_struct(given, megamoe_problem MEGAMOE_PROBLEM_INIT, "megamoe_problem");
  require(c.activation == MEGAMOE_SWIGLU || c.activation == MEGAMOE_SWIGLU_OAI,
          ErrorCode::kInvalidArgument,
          "activation is ",
          c.activation,
          "; there are MEGAMOE_SWIGLU (0) and MEGAMOE_SWIGLU_OAI (1)");
  return {.ranks = c.ranks,
          .experts = c.experts,
          .topk = c.topk,
          .hidden = c.hidden,
          .intermediate = c.intermediate,
          .capacity = c.capacity,
          .has_biases = c.has_biases != 0,
          .activation = {.kind = c.activation == MEGAMOE_SWIGLU ? ActivationKind::kSwiglu
                                                                : ActivationKind::kSwigluOai,
                         .clamp = c.clamp,
                         .alpha = c.alpha,
                         .limit = c.limit,
                         .fast_math = c.fast_math != 0}};
}

LayerOptions options_of(const megamoe_layer_options* given, int ranks) {
  if (given == nullptr) return {};
  const auto c =
      read_struct(given, megamoe_layer_options MEGAMOE_LAYER_OPTIONS_INIT, "megamoe_layer_options");
  LayerOptions options{.machine = text_or(c.machine, "auto"),
                       .instruction_set = text_or(c.instruction_set, ""),
                       .workers = c.workers,
                       .numerics = text_or(c.numerics, ""),
                       .device = c.device,
                       .num_sms = c.num_sms,
                       .expected_tokens = c.expected_tokens,
                       .pool_rows = c.pool_rows,
                       .memory_budget = c.memory_budget,
                       .timeout_ms = c.timeout_ms};
  if (c.bases != nullptr) options.memory = {{c.bases, c.bases + ranks}, c.bases_bytes};
  return options;
}

WeightView weights_of(const megamoe_weights* given) {
  const auto c = read_struct(given, megamoe_weights MEGAMOE_WEIGHTS_INIT, "megamoe_weights");
  return {.linear1 = c.linear1,
          .linear1_scale = c.linear1_scale,
          .linear2 = c.linear2,
          .linear2_scale = c.linear2_scale,
          .linear1_bias = c.linear1_bias,
          .linear2_bias = c.linear2_bias};
}

}  // namespace megamoe
