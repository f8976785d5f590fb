#include "cli/layer_run.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "cli/progress.hpp"

namespace megamoe::cli {
namespace {

constexpr std::int64_t kTokensAtOnce = 256;  // of an input that is read in portions

/// A flag's value must agree with what a file says.
template <class T>
void require_same(
    const std::string& first, T a, const std::string& second, T b, std::string_view what) {
  require(a == b, ErrorCode::kBadFile, first, " has ", what, " ", a, ", and ", second, " has ", b);
}

std::vector<TokenRange> ranges_of(const std::vector<std::int64_t>& counts) {
  std::vector<TokenRange> ranges;
  std::int64_t first = 0;
  for (const std::int64_t count : counts) {
    ranges.push_back({first, count});
    first += count;
  }
  return ranges;
}

/// What --capacity says, else what the rank with the most tokens needs.
int capacity_of(const RunArguments& arguments, const std::vector<TokenRange>& tokens) {
  const auto most =
      std::max_element(tokens.begin(), tokens.end(), [](const TokenRange& a, const TokenRange& b) {
        return a.count < b.count;
      });
  const std::int64_t capacity = arguments.capacity.value_or(std::max<std::int64_t>(1, most->count));
  require(capacity >= 1 && capacity <= kMaxCapacity,
          ErrorCode::kInvalidArgument,
          arguments.capacity ? "--capacity is " : "the most tokens of a rank are ",
          capacity,
          "; it must be 1 to ",
          kMaxCapacity);
  require(most->count <= capacity,
          ErrorCode::kInvalidArgument,
          "rank ",
          most - tokens.begin(),
          " has ",
          most->count,
          " tokens; --capacity is ",
          capacity);
  return static_cast<int>(capacity);
}

}  // namespace

void require_machine_flags(const RunArguments& arguments) {
  const std::string& machine = arguments.layer.machine;
  const bool is_cpu = machine == "auto" || machine == "cpu";
  require(!is_cpu || arguments.numerics != "fast",
          ErrorCode::kUnsupportedMachine,
          "--numerics is fast; the cpu machine has exact only");
  require(!is_cpu || !arguments.num_sms,
          ErrorCode::kInvalidArgument,
          "--num-sms is given; the cpu machine takes --workers");
}

void require_possible(const LayerRun& run) {
  static_cast<void>(Layer::symmetric_bytes(run.problem, run.arguments.layer));
}

LayerRun open_run(const WeightArguments& weights,
                  const std::string& input_path,
                  const ActivationArguments& activation,
                  const RunArguments& arguments) {
  require_machine_flags(arguments);
  LayerRun run{.problem = {},
               .weights = open_weights(weights.path, weights.options),
               .input = std::make_unique<InputFile>(input_path),
               .tokens = {},
               .arguments = arguments};
  const WeightFacts& facts = run.weights->facts();
  require_same(weights.path, facts.hidden, input_path, run.input->hidden(), "hidden size");
  run.tokens = ranges_of(run.input->tokens_per_rank(arguments.ranks));
  run.problem = {.ranks = static_cast<int>(run.tokens.size()),
                 .experts = facts.experts,
                 .topk = run.input->topk(),
                 .hidden = facts.hidden,
                 .intermediate = facts.intermediate,
                 .capacity = capacity_of(arguments, run.tokens),
                 .has_biases = facts.has_biases,
                 .activation = activation_of(activation, facts.suggested_activation)};
  validate(run.problem);
  require_known_experts(*run.input, input_path, run.problem);
  return run;
}

void require_known_experts(const InputFile& input,
                           const std::string& path,
                           const Problem& problem) {
  const auto topk = static_cast<std::size_t>(problem.topk);
  std::vector<std::int64_t> ids(static_cast<std::size_t>(kTokensAtOnce) * topk);
  std::vector<float> weights(ids.size());
  for (std::int64_t first = 0; first < input.tokens(); first += kTokensAtOnce) {
    const std::int64_t count = std::min(kTokensAtOnce, input.tokens() - first);
    input.read_routing(first, count, ids.data(), weights.data());
    const auto end = ids.begin() + count * problem.topk;
    const auto bad =
        std::find_if(ids.begin(), end, [&](std::int64_t id) { return id >= problem.experts; });
    if (bad == end) continue;
    const std::int64_t pair = bad - ids.begin();
    throw Error(ErrorCode::kBadFile,
                sentence(path,
                         ": tensor topk_ids: [",
                         first + pair / problem.topk,
                         ", ",
                         pair % problem.topk,
                         "] is ",
                         *bad,
                         "; ids must be below ",
                         problem.experts,
                         ", the number of experts"));
  }
}

Layer make_layer(Group& group, const LayerRun& run) {
  Layer layer(group, run.problem, run.arguments.layer);
  const int experts = run.problem.experts_per_rank();
  Progress progress("experts packed", static_cast<std::uint64_t>(experts), group.rank() == 0);
  ExpertScratch scratch;
  for (int local = 0; local < experts; ++local) {
    const int expert = group.rank() * experts + local;
    layer.set_expert(local, run.weights->expert(expert, scratch));
    run.weights->release(expert);
    progress.advance_to(static_cast<std::uint64_t>(local) + 1);
  }
  return layer;
}

void load_tokens(Layer& layer, const LayerRun& run, const TokenRange& tokens) {
  const LayerInputs inputs = layer.inputs();
  run.input->read_routing(
      tokens.first, tokens.count, inputs.topk_ids.data(), inputs.topk_weights.data());
  const auto hidden = static_cast<std::size_t>(run.problem.hidden);
  for (std::int64_t done = 0; done < tokens.count; done += kTokensAtOnce) {
    const std::int64_t count = std::min(kTokensAtOnce, tokens.count - done);
    const std::size_t offset = static_cast<std::size_t>(done) * hidden;
    run.input->read_rows(tokens.first + done,
                         count,
                         inputs.tokens.data() + offset,
                         inputs.token_scales.data() + offset / 32);
    run.input->release_rows(tokens.first + done, count);
  }
}

std::vector<std::string> launch(const LayerRun& run, const RankBody& body) {
  const LaunchResult result = run.arguments.in_processes()
                                  ? launch_processes(run.problem.ranks, body)
                                  : launch_threads(run.problem.ranks, body);
  if (!result.is_good()) throw Error(result.cause().code, result.explain());
  std::vector<std::string> results;
  for (const RankOutcome& rank : result.ranks)
    results.push_back(rank.result);
  return results;
}

}  // namespace megamoe::cli
