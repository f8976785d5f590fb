#include "cli/arguments.hpp"

#include <array>
#include <cmath>
#include <sstream>

#include "base/check.hpp"
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
  verb.add_option("--layer", to.options.layer, "layer of a checkpoint");
  verb.add_flag(
      "--requantise", to.options.allow_requantise, "let bf16 and FP8 weights become MXFP4");
}

void add_activation(CLI::App& verb, ActivationArguments& to) {
  verb.add_option("--activation", to.kind, "default: what the weights suggest")
      ->check(one_of({std::string(kSwigluName), std::string(kSwigluOaiName)}));
  verb.add_option("--clamp", to.clamp, "swiglu: clamps gate and up; at least 0");
  verb.add_option("--alpha", to.alpha, "swiglu-oai: of the sigmoid");
  verb.add_option("--limit", to.limit, "swiglu-oai: clamps gate and up");
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
  verb.add_option("--machine", to.layer.machine, "auto: a GPU that this build knows, else the CPU")
      ->check(one_of({"auto", "cpu", "sm90", "sm100"}));
  verb.add_option("--num-sms", to.num_sms, "SMs of a GPU that may be used");
  verb.add_option("--pool-rows", to.layer.pool_rows, "rows of the pool, rounded up to 384")
      ->check(CLI::PositiveNumber);
  verb.add_option("--memory-budget",
                  to.layer.memory_budget,
                  "bytes of a rank's symmetric memory, for the pool's default");
}

void add_run(CLI::App& verb, RunArguments& to) {
  add_machine(verb, to);
  verb.add_option(
      "--ranks", to.ranks, "default: the length of the input's tokens_per_rank, else 1");
  verb.add_option("--launch", to.launch, "ranks as threads or as processes")
      ->check(one_of({"threads", "processes"}));
  verb.add_option("--workers", to.layer.workers, "of a rank (default: cores / ranks, at least 1)")
      ->check(CLI::PositiveNumber);
  verb.add_option(
      "--capacity", to.capacity, "tokens that a rank may bring (default: the most that one has)");
  verb.add_option("--isa",
                  to.layer.instruction_set,
                  "instruction set of the CPU machine (default: the best there is)");
  verb.add_option("--numerics", to.numerics, "fast or exact, for machines that have both")
      ->check(one_of({"fast", "exact"}));
  verb.add_option("--timeout-ms", to.layer.timeout_ms, "bound of every wait; 0: none");
}

void add_shape(CLI::App& verb, ShapeArguments& to) {
  verb.add_option("--shape", to.shape, "model name, or H,I,E,K");
  verb.add_option("--experts", to.experts, "cuts the shape down to so many experts");
}

LayerShape layer_shape(const ShapeArguments& arguments) {
  const ModelShape* model = find_model_shape(arguments.shape);
  LayerShape shape =
      model != nullptr ? LayerShape{model->hidden, model->intermediate, model->experts, model->topk}
                       : parse_numbers(arguments.shape);
  if (arguments.experts) shape.experts = *arguments.experts;
  return shape;
}

}  // namespace megamoe::cli
