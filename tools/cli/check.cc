#include <iostream>
#include <memory>
#include <vector>

#include "cli/judge.hpp"
#include "cli/layer_run.hpp"
#include "cli/verbs.hpp"
#include "files/safetensors_file.hpp"

namespace megamoe::cli {
namespace {

struct CheckVerb {
  WeightArguments weights;
  ActivationArguments activation;
  std::string input, output;
  std::string numerics = "exact";
  bool json = false;
};

/// The rows that some machine wrote; copied, since a file promises no alignment.
std::vector<Bfloat16> read_rows(const std::string& path, const LayerRun& run) {
  const SafetensorsFile file(path);
  const TensorView& y = file.get("y");
  require_type(y, {DataType::kBF16});
  require_shape(y, {{"tokens", run.total_tokens()}, {"hidden size", run.problem.hidden}});
  std::vector<Bfloat16> rows(y.bytes.size() / sizeof(Bfloat16));
  std::memcpy(rows.data(), y.bytes.data(), y.bytes.size());
  return rows;
}

ExitCode check(const CheckVerb& arguments) {
  const LayerRun run = open_run(arguments.weights, arguments.input, arguments.activation, {});
  const Judgement judgement =
      judge(run,
            read_rows(arguments.output, run),
            arguments.numerics == "fast" ? kRegroupedTolerance : kExactTolerance);
  if (arguments.json)
    std::cout << judgement.to_json().dump(2) << "\n";
  else
    std::cout << judgement.explain() << "\n";
  return judgement.agrees() ? kGood : kCheckFailed;
}

}  // namespace

void add_check(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand(
      "check", "Compare an output file with the fp64 reference; runs no machine");
  auto arguments = std::make_shared<CheckVerb>();
  add_weights(*verb, arguments->weights);
  verb->add_option("--input", arguments->input, "the tokens that the output belongs to")
      ->required();
  verb->add_option("--output", arguments->output, "the file to judge")->required();
  verb->add_option(
          "--numerics",
          arguments->numerics,
          "of the machine that wrote it, which decides how far it may be off (default exact)")
      ->check(CLI::IsMember(std::vector<std::string>{"fast", "exact"}));
  add_activation(*verb, arguments->activation);
  verb->add_flag("--json", arguments->json, "print the judgement as JSON");
  verb->callback([&action, arguments] { action = [arguments] { return check(*arguments); }; });
}

}  // namespace megamoe::cli
