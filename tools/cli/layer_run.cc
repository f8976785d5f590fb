#include "cli/layer_run.hpp"

#include <algorithm>
#include <iostream>

#include "base/check.hpp"
#include "cli/progress.hpp"
#include "megamoe/computer.hpp"

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

/// For ranks that are processes auto is the CPU: asking for a GPU would start its driver in the
/// process that is going to fork.
RunArguments of_launch(RunArguments arguments) {
  std::string& machine = arguments.layer.machine;
  if (arguments.in_processes() && machine == "auto") machine = "cpu";
  return arguments;
}

/// The group that a launcher made this process a rank of, if it did; its ranks become the run's.
std::shared_ptr<Group> join_group(RunArguments& arguments) {
  if (!arguments.is_rank()) return nullptr;
  auto group = std::make_shared<Group>(Group::from_environment(arguments.layer.timeout_ms));
  require(arguments.ranks.value_or(group->ranks()) == group->ranks(),
          ErrorCode::kInvalidArgument,
          "--ranks is ",
          arguments.ranks.value_or(0),
          "; the launcher started ",
          group->ranks());
  arguments.ranks = group->ranks();
  return group;
}

bool is_exact_only(const std::string& machine) {
  return machine != "auto" && machine != "sm90";
}

}  // namespace

void require_machine_flags(const RunArguments& arguments) {
  const bool is_cpu = arguments.layer.machine == "cpu";
  const bool is_gpu = is_named_gpu(arguments.layer.machine);
  require(!is_exact_only(arguments.layer.machine) || arguments.layer.numerics != "fast",
          ErrorCode::kUnsupportedMachine,
          "--numerics is fast; the ",
          arguments.layer.machine,
          " machine has exact only");
  require(!is_cpu || arguments.layer.num_sms == 0,
          ErrorCode::kInvalidArgument,
          "--num-sms is given; the cpu machine takes --workers");
  require(!is_gpu || arguments.layer.workers == 0,
          ErrorCode::kInvalidArgument,
          "--workers is given; the ",
          arguments.layer.machine,
          " machine takes --num-sms");
}

void require_possible(const LayerRun& run) {
  const auto look = [&] {
    static_cast<void>(Layer::symmetric_bytes(run.problem, run.arguments.layer));
  };
  const bool is_gpu_asked_before_fork =
      run.arguments.launch == "processes" && run.arguments.layer.machine != "cpu";
  if (!is_gpu_asked_before_fork) return look();
  // Looking at cards starts their driver, which a process that is going to fork must not do.
  const LaunchResult looked = launch_processes(1, [&](const Group&) {
    const std::string why_not = why_no_processes(run.arguments.layer, run.problem.ranks);
    require(why_not.empty(), ErrorCode::kUnsupportedMachine, why_not);
    look();
    return std::string();
  });
  if (!looked.is_good()) throw Error(looked.cause().code, looked.cause().sentence);
}

LayerRun open_run(const WeightArguments& weights,
                  const std::string& input_path,
                  const ActivationArguments& activation,
                  const RunArguments& arguments) {
  require_machine_flags(arguments);
  RunArguments settled = of_launch(arguments);
  const std::shared_ptr<Group> group = join_group(settled);
  LayerRun run{.problem = {},
               .weights = open_weights(weights.path, weights.options),
               .input = std::make_unique<InputFile>(input_path),
               .tokens = {},
               .arguments = settled,
               .group = group};
  const WeightFacts& facts = run.weights->facts();
  require_same(weights.path, facts.hidden, input_path, run.input->hidden(), "hidden size");
  run.tokens = ranges_of(run.input->tokens_per_rank(settled.ranks));
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

namespace {

/// Unless it is said otherwise, those of a machine that has them are.
bool takes_fast_numerics(const LayerRun& run) {
  return run.arguments.layer.numerics != "exact" && !is_exact_only(machine_of(run.arguments.layer));
}

/// Collective: of all ranks' experts, since one layer has one kind of numerics.
bool all_fit_fast_numerics(Group& group, const LayerRun& run) {
  const int experts = run.problem.experts_per_rank();
  ExpertScratch scratch;
  bool fits = true;
  for (int local = 0; fits && local < experts; ++local)
    fits = fits_fast_numerics(run.problem,
                              run.weights->expert(group.rank() * experts + local, scratch));
  const std::vector<std::string> all = group.gather(fits ? "fits" : "", 0);
  const auto odd = std::find(all.begin(), all.end(), "");
  if (odd == all.end()) return true;
  if (group.rank() == 0)
    std::cerr << "megamoe: numerics fast can't hold the exponents of rank " << odd - all.begin()
              << "'s weights exactly: exact is taken\n";
  return false;
}

}  // namespace

Layer make_layer(Group& group, const LayerRun& run) {
  LayerOptions options = run.arguments.layer;
  if (takes_fast_numerics(run) && !all_fit_fast_numerics(group, run)) options.numerics = "exact";
  Layer layer(group, run.problem, options);
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
  const std::int64_t at_once = std::min(kTokensAtOnce, tokens.count);
  std::vector<std::int64_t> ids(static_cast<std::size_t>(at_once * run.problem.topk));
  std::vector<float> weights(ids.size());
  std::vector<std::uint8_t> codes(static_cast<std::size_t>(at_once * run.problem.hidden));
  std::vector<std::uint8_t> scales(codes.size() / 32);
  for (std::int64_t done = 0; done < tokens.count; done += at_once) {
    const std::int64_t count = std::min(at_once, tokens.count - done);
    const std::int64_t first = tokens.first + done;
    run.input->read_routing(first, count, ids.data(), weights.data());
    run.input->read_rows(first, count, codes.data(), scales.data());
    layer.set_routing(done, count, ids.data(), weights.data());
    layer.set_quantized_tokens(done, count, codes.data(), scales.data());
    run.input->release_rows(first, count);
  }
}

std::vector<std::string> launch(const LayerRun& run, const RankBody& body) {
  if (run.group != nullptr)
    return run.group->gather(body(Group(run.group->link())), run.arguments.layer.timeout_ms);
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
