#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/check.hpp"
#include "cli/arguments.hpp"
#include "cli/numbers.hpp"
#include "cli/progress.hpp"
#include "cli/table.hpp"
#include "cli/verbs.hpp"
#include "files/safetensors_output.hpp"
#include "files/synthetic.hpp"

namespace megamoe::cli {
namespace {

struct GenerateVerb {
  ShapeArguments shape;
  std::int64_t tokens = 0;
  int ranks = 1;
  std::uint64_t seed = 0;
  std::string routing = "uniform";
  std::string weights, input;
  bool json = false;
};

SyntheticLayer layer_of(const GenerateVerb& arguments) {
  const LayerShape shape = layer_shape(arguments.shape);
  SyntheticLayer layer{.hidden = shape.hidden,
                       .intermediate = shape.intermediate,
                       .experts = shape.experts,
                       .topk = shape.topk,
                       .tokens = arguments.tokens,
                       .ranks = arguments.ranks,
                       .seed = arguments.seed,
                       .routing = parse_routing(arguments.routing)};
  validate(layer);
  return layer;
}

/// Writes one file with a progress line in megabytes.
template <class Write>
std::uint64_t write_file(const std::string& path, const SyntheticLayer& layer, Write write) {
  std::unique_ptr<Progress> progress;
  write(path, layer, [&](std::uint64_t done, std::uint64_t total) {
    constexpr std::uint64_t kMegabyte = 1'000'000;
    if (!progress) progress = std::make_unique<Progress>("MB of " + path, total / kMegabyte);
    progress->advance_to(done / kMegabyte);
  });
  return std::filesystem::file_size(path);
}

ExitCode generate(const GenerateVerb& arguments) {
  const SyntheticLayer layer = layer_of(arguments);
  require(!arguments.weights.empty() || !arguments.input.empty(),
          ErrorCode::kInvalidArgument,
          "nothing to write: give --weights, --input or both");
  require_other_file({"--input", arguments.input}, {"--weights", arguments.weights});
  for (const std::string& path : {arguments.weights, arguments.input})
    if (!path.empty()) require_writable(path);
  nlohmann::ordered_json json = {{"hidden", layer.hidden},
                                 {"intermediate", layer.intermediate},
                                 {"experts", layer.experts},
                                 {"topk", layer.topk},
                                 {"tokens", layer.tokens},
                                 {"ranks", layer.ranks},
                                 {"seed", layer.seed}};
  std::string line;
  const auto note = [&](const char* name, const std::string& path, std::uint64_t bytes) {
    json[name] = {{"path", path}, {"bytes", bytes}};
    line += (line.empty() ? "" : ", ") + path + " (" + bytes_text(bytes) + ")";
  };
  if (!arguments.weights.empty())
    note("weights",
         arguments.weights,
         write_file(arguments.weights, layer, write_synthetic_weights));
  if (!arguments.input.empty())
    note("input", arguments.input, write_file(arguments.input, layer, write_synthetic_input));
  if (arguments.json)
    std::cout << json.dump(2) << "\n";
  else
    std::cout << "H " << layer.hidden << ", I " << layer.intermediate << ", " << layer.experts
              << " experts, top-" << layer.topk << ", " << layer.tokens << " tokens for "
              << count_text(static_cast<std::uint64_t>(layer.ranks), "rank") << ", seed "
              << layer.seed << ": " << line << "\n";
  return kGood;
}

}  // namespace

void add_generate(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("generate", "Write a synthetic layer and tokens for it");
  auto arguments = std::make_shared<GenerateVerb>();
  add_shape(*verb, arguments->shape);
  verb->get_option("--shape")->required();
  add_whole_number(*verb, "--tokens", arguments->tokens, {.least = 0}, "over all ranks")
      ->required();
  add_whole_number(*verb,
                   "--ranks",
                   arguments->ranks,
                   {.least = 1, .most = kMaxRanks},
                   "that the tokens are split over evenly (default 1)");
  add_whole_number(*verb,
                   "--seed",
                   arguments->seed,
                   {.least = 0},
                   "the same seed, the same bytes, on every computer (default 0)");
  verb->add_option("--routing", arguments->routing, "uniform, zipf or hot (default uniform)");
  verb->add_option("--weights", arguments->weights, "where the layer goes");
  verb->add_option("--input", arguments->input, "where the tokens go");
  verb->add_flag("--json", arguments->json, "print facts as JSON");
  verb->callback([&action, arguments] { action = [arguments] { return generate(*arguments); }; });
}

}  // namespace megamoe::cli
