#include "cli/arguments.hpp"

#include <array>
#include <cmath>
#include <filesystem>
#include <sstream>

#include "base/check.hpp"
#include "cli/numbers.hpp"
#include "files/model_shapes.hpp"

namespace megamoe::cli {
namespace {

constexpr std::string_view kSwigluName = "swiglu";
constexpr std::string_view kSwigluOaiName = "swiglu-oai";

/// Every name that a flag takes, refused otherwise by the parser with the list.
CLI::IsMember one_of(std::initializer_list<std::string> names) {
  return CLI::IsMember(std::vector<std::string>(names));
}

float bounded(std::string_view flag, double value) {
  require(std::isfinite(value) && value >= 0,
          ErrorCode::kInvalidArgument,
          flag,
          " is ",
          value,
          "; it must be a finite number of at least 0");
  return static_cast<float>(value);
}

float clamp_of(double value) {
  require(value >= 0,
          ErrorCode::kInvalidArgument,
          "--clamp is ",
          value,
          "; it must be at least 0");  // NaN is not
  return static_cast<float>(value);
}

/// A value that the activation has no use for would be a wrong result without a word.
void require_used(const ActivationArguments& arguments, ActivationKind kind) {
  const bool is_oai = kind == ActivationKind::kSwigluOai;
  const char* const stray = is_oai && arguments.clamp    ? "--clamp"
                            : !is_oai && arguments.alpha ? "--alpha"
                            : !is_oai && arguments.limit ? "--limit"
                                                         : nullptr;
  require(stray == nullptr,
          ErrorCode::kInvalidArgument,
          stray == nullptr ? "" : stray,
          " is given; the activation ",
          is_oai ? kSwigluOaiName : kSwigluName,
          " has none (--activation says which)");
}

std::string known_shapes() {
  std::string names;
  for (const ModelShape& shape : kModelShapes)
    names += std::string(shape.name) + ", ";
  return names;
}

LayerShape parse_numbers(const std::string& text) {
  std::array<int, 4> numbers{};
  std::istringstream in(text);
  bool good = true;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    char comma = ',';
    if (i > 0) in >> comma;
    good = good && comma == ',' && (in >> numbers[i]);
  }
  good = good && in.peek() == std::istringstream::traits_type::eof();
  require(good,
          ErrorCode::kInvalidArgument,
          "--shape is ",
          text,
          "; it must be one of ",
          known_shapes(),
          "or four numbers H,I,E,K");
  return {numbers[0], numbers[1], numbers[2], numbers[3]};
}

}  // namespace

void add_weights(CLI::App& verb, WeightArguments& to) {
  verb.add_option("--weights", to.path, "layer file, or a checkpoint's folder, file or index")
      ->required();
  add_layer(verb, to.options);
}

void add_layer(CLI::App& verb, WeightOptions& to) {
  add_whole_number(verb, "--layer", to.layer, {.least = 0}, "layer of a checkpoint");
  verb.add_flag("--requantise", to.allow_requantise, "let bf16 and FP8 weights become MXFP4");
}

void add_activation(CLI::App& verb, ActivationArguments& to) {
  verb.add_option("--activation", to.kind, "default: what the weights suggest")
      ->check(one_of({std::string(kSwigluName), std::string(kSwigluOaiName)}));
  add_number(verb, "--clamp", to.clamp, "swiglu: clamps gate and up; at least 0");
  add_number(verb, "--alpha", to.alpha, "swiglu-oai: of the sigmoid");
  add_number(verb, "--limit", to.limit, "swiglu-oai: clamps gate and up; at least 0");
  verb.add_option_function<std::string>(
          "--fast-math",
          [&to](const std::string& word) { to.fast_math = word == "on"; },
          "approximate exponential and reciprocal where a machine has them (default on)")
      ->check(one_of({"on", "off"}));
}

Activation activation_of(const ActivationArguments& arguments, const Activation& suggested) {
  Activation activation = suggested;
  if (!arguments.kind.empty())
    activation.kind =
        arguments.kind == kSwigluOaiName ? ActivationKind::kSwigluOai : ActivationKind::kSwiglu;
  require_used(arguments, activation.kind);
  if (arguments.clamp) activation.clamp = clamp_of(*arguments.clamp);
  if (arguments.limit) activation.limit = bounded("--limit", *arguments.limit);
  if (arguments.alpha) {
    require(std::isfinite(*arguments.alpha),
            ErrorCode::kInvalidArgument,
            "--alpha is ",
            *arguments.alpha,
            "; it must be finite");
    activation.alpha = static_cast<float>(*arguments.alpha);
  }
  activation.fast_math = arguments.fast_math;
  return activation;
}

void add_machine(CLI::App& verb, RunArguments& to) {
  verb.add_option("--machine",
                  to.layer.machine,
                  "auto: a Hopper card where the build knows it, else the CPU")
      ->check(one_of({"auto", "cpu", "sm90", "sm100", std::string(kEmulatedMachine)}));
  add_whole_number(
      verb, "--num-sms", to.layer.num_sms, {.least = 1}, "SMs of a GPU that may be used");
  add_whole_number(
      verb, "--pool-rows", to.layer.pool_rows, {.least = 1}, "rows of the pool, rounded up to 384");
  add_whole_number(verb,
                   "--memory-budget",
                   to.layer.memory_budget,
                   {.least = 1},
                   "bytes of a rank's symmetric memory, for the pool's default");
}

void add_run(CLI::App& verb, RunArguments& to) {
  add_machine(verb, to);
  add_whole_number(verb,
                   "--ranks",
                   to.ranks,
                   {.least = 1, .most = kMaxRanks},
                   "default: the length of the input's tokens_per_rank, else 1");
  verb.add_option("--launch",
                  to.launch,
                  "ranks as threads or as processes; environment: this process is a rank that "
                  "torchrun, mpirun or srun started")
      ->check(one_of({"threads", "processes", "environment"}));
  add_whole_number(verb,
                   "--workers",
                   to.layer.workers,
                   {.least = 1},
                   "CPU: of a rank (default: cores / ranks, at least 1)");
  add_whole_number(verb,
                   "--capacity",
                   to.capacity,
                   {.least = 1, .most = kMaxCapacity},
                   "the most tokens of a rank (default: what the input needs)");
  verb.add_option("--isa",
                  to.layer.instruction_set,
                  "instruction set of the CPU machine (default: the best there is)");
  verb.add_option("--numerics",
                  to.layer.numerics,
                  "fast or exact, for machines that have both (default fast)")
      ->check(one_of({"fast", "exact"}));
  add_whole_number(
      verb, "--timeout-ms", to.layer.timeout_ms, {.least = 0}, "bound of every wait; 0: none");
}

void add_shape(CLI::App& verb, ShapeArguments& to) {
  verb.add_option("--shape", to.shape, "model name, or H,I,E,K");
  add_whole_number(verb,
                   "--experts",
                   to.experts,
                   {.least = 1, .most = kMaxExperts},
                   "cuts the shape down to so many experts");
}

LayerShape layer_shape(const ShapeArguments& arguments) {
  const ModelShape* model = find_model_shape(arguments.shape);
  LayerShape shape =
      model != nullptr ? LayerShape{model->hidden, model->intermediate, model->experts, model->topk}
                       : parse_numbers(arguments.shape);
  if (arguments.experts) shape.experts = *arguments.experts;
  return shape;
}

void require_other_file(const FileFlag& written, const FileFlag& other) {
  namespace fs = std::filesystem;
  if (written.path.empty() || other.path.empty()) return;
  std::error_code ignored;
  const bool is_same = fs::equivalent(written.path, other.path, ignored) ||
                       fs::weakly_canonical(fs::absolute(written.path), ignored) ==
                           fs::weakly_canonical(fs::absolute(other.path), ignored);
  require(!is_same,
          ErrorCode::kInvalidArgument,
          written.flag,
          " is ",
          written.path,
          ", the same file as ",
          other.flag,
          "; it would be written over");
}

}  // namespace megamoe::cli
