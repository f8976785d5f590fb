#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cli/arguments.hpp"
#include "files/input_file.hpp"
#include "files/weight_source.hpp"
#include "megamoe/launch.hpp"
#include "megamoe/layer.hpp"
#include "megamoe/problem.hpp"

namespace megamoe::cli {

/// Some ranks' consecutive tokens of an input file.
struct TokenRange {
  std::int64_t first = 0, count = 0;
};

/// A layer, its tokens and how to run it: everything that can be refused has been looked at.
struct LayerRun {
  Problem problem;
  std::unique_ptr<WeightSource> weights;
  std::unique_ptr<InputFile> input;
  std::vector<TokenRange> tokens;  ///< by rank
  RunArguments arguments;
  std::shared_ptr<Group> group;  ///< where a launcher started this process as a rank; else null

  std::int64_t total_tokens() const { return input->tokens(); }
};

/// Opens both files and holds them against each other and against the arguments. Throws a sentence
/// with the file, the tensor, the value and the bound.
LayerRun open_run(const WeightArguments& weights,
                  const std::string& input_path,
                  const ActivationArguments& activation,
                  const RunArguments& arguments);

/// Refuses flags that the machine has no use for.
void require_machine_flags(const RunArguments& arguments);

/// Refuses what no layer can be made of on this computer, before any work: a machine that is not
/// here, memory over the budget.
void require_possible(const LayerRun& run);

/// Refuses an id past the last expert, naming file, token, slot and id.
void require_known_experts(const InputFile& input, const std::string& path, const Problem& problem);

/// In one rank, collective: its layer, with its experts packed. Only rank 0 shows progress.
Layer make_layer(Group& group, const LayerRun& run);

/// Puts a rank's tokens into its layer's inputs.
void load_tokens(Layer& layer, const LayerRun& run, const TokenRange& tokens);

/// Runs `body` in every rank as the arguments say; throws the cause's sentence when one fails.
std::vector<std::string> launch(const LayerRun& run, const RankBody& body);

}  // namespace megamoe::cli
