#include <algorithm>
#include <exception>
#include <string>
#include <utility>

#include "api/c_handles.hpp"
#include "api/c_values.hpp"
#include "megamoe/megamoe.h"
#include "megamoe/megamoe.hpp"
#include "plan/explain.hpp"

using namespace megamoe;

namespace {

thread_local std::string last_error;

megamoe_status to_status(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument: return MEGAMOE_INVALID_ARGUMENT;
    case ErrorCode::kBadFile: return MEGAMOE_BAD_FILE;
    case ErrorCode::kUnsupportedMachine: return MEGAMOE_UNSUPPORTED_MACHINE;
    case ErrorCode::kRunFailed: return MEGAMOE_RUN_FAILED;
    case ErrorCode::kInternal: return MEGAMOE_INTERNAL;
  }
  return MEGAMOE_INTERNAL;
}

/// Turns what is thrown into a status; every function that can fail goes through it.
template <class Body>
megamoe_status guarded(Body body) noexcept {
  last_error.clear();
  try {
    body();
    return MEGAMOE_OK;
  } catch (const Error& error) {
    last_error = error.what();
    return to_status(error.code());
  } catch (const std::exception& error) {
    last_error = error.what();
    return MEGAMOE_INTERNAL;
  }
}

// Never destroyed: a caller's own static may outlive one of ours.
HandleTable<megamoe_group, Group>& groups() {
  static auto* const table = new HandleTable<megamoe_group, Group>("the group");
  return *table;
}

HandleTable<megamoe_layer, Layer>& layers() {
  static auto* const table = new HandleTable<megamoe_layer, Layer>("the layer");
  return *table;
}

template <class Pointer>
Pointer required(Pointer pointer, const char* name) {
  require(pointer != nullptr, ErrorCode::kInvalidArgument, name, " is null");
  return pointer;
}

void write_plan(const Plan& plan, int32_t format, char* text, std::size_t* bytes) {
  required(bytes, "bytes");
  require(format == MEGAMOE_PLAN_TEXT || format == MEGAMOE_PLAN_JSON,
          ErrorCode::kInvalidArgument,
          "format is ",
          format,
          "; there are MEGAMOE_PLAN_TEXT (0) and MEGAMOE_PLAN_JSON (1)");
  const std::string whole = format == MEGAMOE_PLAN_TEXT ? explain(plan) : to_json(plan).dump(2);
  const std::size_t room = text == nullptr ? 0 : *bytes;
  if (room > 0) text[whole.copy(text, room - 1)] = '\0';
  *bytes = whole.size() + 1;
}

void write_report(const CallReport& report, megamoe_report* to) {
  auto c = read_struct(to, megamoe_report MEGAMOE_REPORT_INIT, "megamoe_report");
  if (c.expert_rows != nullptr)
    std::copy(report.expert_rows.begin(), report.expert_rows.end(), c.expert_rows);
  c.route_ms = report.times.route;
  c.compute_ms = report.times.compute;
  c.meet_ms = report.times.meet;
  c.combine_ms = report.times.combine;
  c.finish_ms = report.times.finish;
  c.total_ms = report.times.total;
  c.bytes_pulled = report.bytes_pulled;
  c.bytes_pushed = report.bytes_pushed;
  c.block_m = report.block_m;
  c.masked_ids = report.masked_ids.count;
  c.masked_token = report.masked_ids.token;
  c.masked_slot = report.masked_ids.slot;
  write_struct(to, c, "megamoe_report");
}

}  // namespace

extern "C" {

const char* megamoe_last_error(void) {
  return last_error.c_str();
}

const char* megamoe_version(void) {
  return kVersion;
}

const char* megamoe_status_name(megamoe_status status) {
  switch (status) {
    case MEGAMOE_OK: return "ok";
    case MEGAMOE_INVALID_ARGUMENT: return "invalid argument";
    case MEGAMOE_BAD_FILE: return "bad file";
    case MEGAMOE_UNSUPPORTED_MACHINE: return "unsupported machine";
    case MEGAMOE_RUN_FAILED: return "run failed";
    case MEGAMOE_INTERNAL: return "internal error";
  }
  return "unknown status";
}

megamoe_status megamoe_group_in_process(int32_t ranks, megamoe_group** group_of_rank) {
  return guarded([&] {
    required(group_of_rank, "groups");
    auto made = Group::in_process(ranks);
    std::transform(made.begin(), made.end(), group_of_rank, [](Group& group) {
      return groups().add(std::move(group));
    });
  });
}

megamoe_status megamoe_group_processes(const megamoe_place* place, megamoe_group** group) {
  return guarded([&] {
    required(group, "group");
    const auto c = read_struct(place, megamoe_place MEGAMOE_PLACE_INIT, "megamoe_place");
    *group = groups().add(Group::processes(
        {c.rank, c.ranks, required(c.name, "name of megamoe_place"), c.timeout_ms}));
  });
}

megamoe_status megamoe_group_from_environment(uint64_t timeout_ms, megamoe_group** group) {
  return guarded([&] {
    required(group, "group");
    *group = groups().add(Group::from_environment(timeout_ms));
  });
}

int32_t megamoe_group_rank(const megamoe_group* group) {
  int32_t rank = -1;
  guarded([&] { rank = groups().find(group)->rank(); });
  return rank;
}

int32_t megamoe_group_ranks(const megamoe_group* group) {
  int32_t ranks = -1;
  guarded([&] { ranks = groups().find(group)->ranks(); });
  return ranks;
}

void megamoe_group_destroy(megamoe_group* group) {
  guarded([&] { groups().remove(group); });
}

megamoe_status megamoe_layer_create(megamoe_group* group,
                                    const megamoe_problem* problem,
                                    const megamoe_layer_options* options,
                                    megamoe_layer** layer) {
  return guarded([&] {
    required(layer, "layer");
    const auto of = groups().find(group);
    const LayerOptions how = options_of(options, of->ranks());
    *layer = layers().add(Layer(*of, problem_of(problem), how));
  });
}

megamoe_status megamoe_layer_sibling(megamoe_layer* layer, megamoe_layer** sibling) {
  return guarded([&] {
    required(sibling, "sibling");
    *sibling = layers().add(layers().find(layer)->sibling());
  });
}

void megamoe_layer_destroy(megamoe_layer* layer) {
  guarded([&] { layers().remove(layer); });
}

megamoe_status megamoe_layer_set_expert(megamoe_layer* layer,
                                        int32_t local_expert,
                                        const megamoe_weights* weights) {
  return guarded([&] { layers().find(layer)->set_expert(local_expert, weights_of(weights)); });
}

megamoe_status megamoe_layer_inputs(megamoe_layer* layer, megamoe_inputs* inputs) {
  return guarded([&] {
    const LayerInputs in = layers().find(layer)->inputs();
    write_struct(inputs,
                 megamoe_inputs{sizeof(megamoe_inputs),
                                in.tokens.data(),
                                in.token_scales.data(),
                                in.topk_weights.data(),
                                in.topk_ids.data()},
                 "megamoe_inputs");
  });
}

megamoe_status megamoe_layer_set_tokens(megamoe_layer* layer, const megamoe_tokens* tokens) {
  return guarded([&] {
    const auto c = read_struct(tokens, megamoe_tokens MEGAMOE_TOKENS_INIT, "megamoe_tokens");
    layers().find(layer)->set_tokens(c.first, c.num_tokens, c.rows);
  });
}

megamoe_status megamoe_layer_set_quantized_tokens(megamoe_layer* layer,
                                                  const megamoe_quantized_tokens* tokens) {
  return guarded([&] {
    const auto c = read_struct(
        tokens, megamoe_quantized_tokens MEGAMOE_QUANTIZED_TOKENS_INIT, "megamoe_quantized_tokens");
    layers().find(layer)->set_quantized_tokens(c.first, c.num_tokens, c.codes, c.scales);
  });
}

megamoe_status megamoe_layer_set_routing(megamoe_layer* layer, const megamoe_routing* routing) {
  return guarded([&] {
    const auto c = read_struct(routing, megamoe_routing MEGAMOE_ROUTING_INIT, "megamoe_routing");
    layers().find(layer)->set_routing(c.first, c.num_tokens, c.ids, c.weights);
  });
}

megamoe_status megamoe_layer_forward(megamoe_layer* layer,
                                     const megamoe_forward* arguments,
                                     megamoe_report* report) {
  return guarded([&] {
    const auto c = read_struct(arguments, megamoe_forward MEGAMOE_FORWARD_INIT, "megamoe_forward");
    if (report != nullptr) shared_bytes(report, "megamoe_report");
    const CallReport done = layers().find(layer)->forward({c.num_tokens, c.output});
    if (report != nullptr) write_report(done, report);
  });
}

megamoe_status megamoe_layer_enqueue(megamoe_layer* layer, const megamoe_stream_call* call) {
  return guarded([&] {
    const auto c =
        read_struct(call, megamoe_stream_call MEGAMOE_STREAM_CALL_INIT, "megamoe_stream_call");
    layers().find(layer)->enqueue({.stream = c.stream,
                                   .num_tokens = c.num_tokens,
                                   .num_tokens_on_device = c.num_tokens_on_device,
                                   .expected_tokens = c.expected_tokens,
                                   .output = c.output});
  });
}

megamoe_status megamoe_layer_wait(megamoe_layer* layer, void* stream, megamoe_report* report) {
  return guarded([&] {
    if (report != nullptr) shared_bytes(report, "megamoe_report");
    const CallReport done = layers().find(layer)->wait(stream);
    if (report != nullptr) write_report(done, report);
  });
}

megamoe_status megamoe_layer_reset(megamoe_layer* layer) {
  return guarded([&] { layers().find(layer)->reset(); });
}

megamoe_status megamoe_plan(const megamoe_problem* problem,
                            int32_t format,
                            char* text,
                            size_t* bytes) {
  return guarded([&] { write_plan(plan_layer(problem_of(problem), {}), format, text, bytes); });
}

megamoe_status megamoe_layer_plan(megamoe_layer* layer, int32_t format, char* text, size_t* bytes) {
  return guarded([&] { write_plan(layers().find(layer)->plan(), format, text, bytes); });
}

}  // extern "C"
