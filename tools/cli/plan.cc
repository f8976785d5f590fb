#include <algorithm>
#include <iostream>
#include <memory>

#include "base/check.hpp"
#include "cli/arguments.hpp"
#include "cli/layer_run.hpp"
#include "cli/numbers.hpp"
#include "cli/verbs.hpp"
#include "megamoe/planning.hpp"
#include "plan/explain.hpp"

namespace megamoe::cli {
namespace {

struct PlanVerb {
  ShapeArguments shape;
  std::string weights, input;
  WeightOptions weight_options;
  std::int64_t tokens = 1;
  RunArguments run;
  bool has_biases = false;
  bool json = false;
};

MachineKind kind_of(const std::string& name) {
  if (name == "sm90") return MachineKind::kSm90;
  if (name == "sm100" || name == kEmulatedMachine) return MachineKind::kSm100;
  return MachineKind::kCpu;
}

/// 0: as many as the machine usually has.
int workers_of(const RunArguments& run) {
  constexpr int kSmsOfH200 = 132;  // the emulation takes its workers from the card it is on
  if (run.layer.machine == "cpu") return run.layer.workers;
  return run.layer.num_sms == 0 && run.is_emulated() ? kSmsOfH200 : run.layer.num_sms;
}

Problem problem_of_shape(const PlanVerb& arguments) {
  const LayerShape shape = layer_shape(arguments.shape);
  const std::int64_t capacity =
      arguments.run.capacity.value_or(std::max<std::int64_t>(1, arguments.tokens));
  require(arguments.tokens <= capacity,
          ErrorCode::kInvalidArgument,
          "--tokens is ",
          arguments.tokens,
          "; it must be at most --capacity, ",
          capacity);
  return {.ranks = arguments.run.ranks.value_or(1),
          .experts = shape.experts,
          .topk = shape.topk,
          .hidden = shape.hidden,
          .intermediate = shape.intermediate,
          .capacity = static_cast<int>(capacity),
          .has_biases = arguments.has_biases,
          .activation = {}};
}

Problem problem_of(const PlanVerb& arguments) {
  if (arguments.weights.empty()) return problem_of_shape(arguments);
  return open_run({arguments.weights, arguments.weight_options}, arguments.input, {}, arguments.run)
      .problem;
}

ExitCode plan(const PlanVerb& arguments) {
  const bool has_files = !arguments.weights.empty() && !arguments.input.empty();
  require(has_files != !arguments.shape.shape.empty(),
          ErrorCode::kInvalidArgument,
          "plan takes either --shape, or --weights and --input");
  RunArguments run = arguments.run;
  if (run.layer.machine == "auto") run.layer.machine = "cpu";  // a plan looks at no card
  require_machine_flags(run);
  LayerOptions options = run.layer;
  const Problem problem = problem_of(arguments);
  if (!has_files) options.expected_tokens = static_cast<int>(arguments.tokens);
  const Plan chosen = plan_layer(problem, {kind_of(options.machine), workers_of(run)}, options);
  if (arguments.json)
    std::cout << to_json(chosen).dump(2) << "\n";
  else
    std::cout << explain(chosen);
  return kGood;
}

}  // namespace

void add_plan(CLI::App& app, Action& action) {
  CLI::App* verb =
      app.add_subcommand("plan", "Say how a layer would be run, and why; runs nothing");
  auto arguments = std::make_shared<PlanVerb>();
  add_shape(*verb, arguments->shape);
  verb->add_option("--weights", arguments->weights, "take the shape from files instead");
  verb->add_option("--input", arguments->input, "with --weights");
  add_layer(*verb, arguments->weight_options);
  add_whole_number(*verb,
                   "--tokens",
                   arguments->tokens,
                   {.least = 0, .most = kMaxCapacity},
                   "of a rank (default 1)");
  verb->add_flag("--biases", arguments->has_biases, "experts have biases");
  add_run(*verb, arguments->run);
  verb->add_flag("--json", arguments->json, "print the plan as JSON");
  verb->callback([&action, arguments] { action = [arguments] { return plan(*arguments); }; });
}

}  // namespace megamoe::cli
