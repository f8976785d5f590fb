#include <algorithm>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/check.hpp"
#include "cli/judge.hpp"
#include "cli/layer_run.hpp"
#include "cli/problem_json.hpp"
#include "cli/rank_output.hpp"
#include "cli/table.hpp"
#include "cli/verbs.hpp"

namespace megamoe::cli {
namespace {

struct ForwardVerb {
  WeightArguments weights;
  ActivationArguments activation;
  RunArguments run;
  std::string input, output;
  bool verify = false;
  bool json = false;
};

/// What the ranks report of the call, together.
struct CallFacts {
  std::string machine;
  int workers = 0;
  PhaseTimes slowest;  ///< of the rank that took longest
  std::uint64_t bytes_pulled = 0, bytes_pushed = 0;
  std::uint64_t symmetric_bytes = 0, weight_bytes = 0;  ///< of a rank
};

std::string rank_result(const Layer& layer, const CallReport& report) {
  const PhaseTimes& t = report.times;
  return nlohmann::json{{"machine", layer.machine()},
                        {"workers", layer.workers()},
                        {"times", {t.route, t.compute, t.meet, t.combine, t.finish, t.total}},
                        {"pulled", report.bytes_pulled},
                        {"pushed", report.bytes_pushed},
                        {"symmetric_bytes", layer.symmetric_bytes()},
                        {"weight_bytes", layer.weight_bytes()}}
      .dump();
}

CallFacts gather(const std::vector<std::string>& results) {
  CallFacts facts;
  for (const std::string& text : results) {
    const auto rank = nlohmann::json::parse(text);
    facts.machine = rank["machine"];
    facts.workers = rank["workers"];
    facts.symmetric_bytes = rank["symmetric_bytes"];
    facts.weight_bytes = rank["weight_bytes"];
    facts.bytes_pulled += rank["pulled"].get<std::uint64_t>();
    facts.bytes_pushed += rank["pushed"].get<std::uint64_t>();
    const auto& t = rank["times"];
    if (t[5].get<double>() > facts.slowest.total)
      facts.slowest = {t[0], t[1], t[2], t[3], t[4], t[5]};
  }
  return facts;
}

/// One rank's part: pack, load, forward, rows into the output.
std::string run_rank(const LayerRun& run, RankOutput& output, Group group) {
  Layer layer = make_layer(group, run);
  const TokenRange& tokens = run.tokens[static_cast<std::size_t>(group.rank())];
  load_tokens(layer, run, tokens);
  const RankPlaces places = output.places_of(group.rank());
  const CallReport report = layer.forward(
      {.num_tokens = tokens.count, .output = reinterpret_cast<std::uint16_t*>(places.rows)});
  std::copy(report.expert_rows.begin(), report.expert_rows.end(), places.tokens_per_expert);
  output.collect(group);
  return rank_result(layer, report);
}

double tokens_per_second(const LayerRun& run, const CallFacts& facts) {
  return facts.slowest.total > 0
             ? static_cast<double>(run.total_tokens()) / facts.slowest.total * 1e3
             : 0;
}

std::string ranks_text(const LayerRun& run, const CallFacts& facts) {
  const auto ranks = static_cast<std::uint64_t>(run.problem.ranks);
  const std::string kind = run.arguments.in_processes() ? " as a process" : " as a thread";
  const std::string kinds = run.arguments.in_processes() ? " as processes" : " as threads";
  return count_text(ranks, "rank") + (ranks == 1 ? kind : kinds) + ", " +
         count_text(static_cast<std::uint64_t>(facts.workers), "worker") + " each";
}

std::string problem_text(const Problem& p) {
  return sentence("H ",
                  p.hidden,
                  ", I ",
                  p.intermediate,
                  ", ",
                  p.experts,
                  " experts, top-",
                  p.topk,
                  p.has_biases ? ", biases" : "");
}

std::string phases_text(const PhaseTimes& t) {
  return "route " + fixed(t.route, 2) + ", compute " + fixed(t.compute, 2) + ", meet " +
         fixed(t.meet, 2) + ", combine " + fixed(t.combine, 2) + ", finish " + fixed(t.finish, 2) +
         " ms";
}

void print_table(const LayerRun& run, const CallFacts& facts, const Judgement* judgement) {
  FactTable table;
  table.add("layer", run.weights->facts().description + ": " + problem_text(run.problem));
  table.add("ran on", facts.machine + ", " + ranks_text(run, facts));
  table.add("tokens",
            sentence(run.total_tokens(),
                     " in ",
                     fixed(facts.slowest.total, 2),
                     " ms = ",
                     fixed(tokens_per_second(run, facts), 0),
                     " tokens/s"));
  table.add("time", phases_text(facts.slowest));
  table.add(
      "between ranks",
      bytes_text(facts.bytes_pulled) + " pulled, " + bytes_text(facts.bytes_pushed) + " pushed");
  table.add("memory of a rank",
            bytes_text(facts.weight_bytes) + " weights, " + bytes_text(facts.symmetric_bytes) +
                " symmetric");
  if (judgement != nullptr) table.add("fp64 reference", judgement->explain());
  table.print(std::cout);
}

void print_json(const LayerRun& run, const CallFacts& facts, const Judgement* judgement) {
  const PhaseTimes& t = facts.slowest;
  nlohmann::ordered_json json = {{"problem", problem_json(run.problem)},
                                 {"machine", facts.machine},
                                 {"launch", run.arguments.launch},
                                 {"workers", facts.workers},
                                 {"tokens", run.total_tokens()},
                                 {"milliseconds",
                                  {{"route", t.route},
                                   {"compute", t.compute},
                                   {"meet", t.meet},
                                   {"combine", t.combine},
                                   {"finish", t.finish},
                                   {"total", t.total}}},
                                 {"tokens_per_second", tokens_per_second(run, facts)},
                                 {"bytes_pulled", facts.bytes_pulled},
                                 {"bytes_pushed", facts.bytes_pushed},
                                 {"weight_bytes", facts.weight_bytes},
                                 {"symmetric_bytes", facts.symmetric_bytes}};
  if (judgement != nullptr) json["verify"] = judgement->to_json();
  std::cout << json.dump(2) << "\n";
}

void print_line(const LayerRun& run, const CallFacts& facts, const std::string& output) {
  std::cout << run.total_tokens() << " tokens through " << run.problem.experts << " experts on "
            << facts.machine << ", " << ranks_text(run, facts) << ", in "
            << fixed(facts.slowest.total, 2) << " ms: " << output << "\n";
}

ExitCode forward(const ForwardVerb& arguments) {
  const FileFlag written{"--output", arguments.output};
  require_other_file(written, {"--weights", arguments.weights.path});
  require_other_file(written, {"--input", arguments.input});
  require_writable(arguments.output);
  const LayerRun run =
      open_run(arguments.weights, arguments.input, arguments.activation, arguments.run);
  for (const std::string& file : run.weights->facts().files)
    require_other_file(written, {"a file of the checkpoint that --weights names", file});
  require_possible(run);
  RankOutput output(run, arguments.output);
  const CallFacts facts =
      gather(launch(run, [&](Group group) { return run_rank(run, output, std::move(group)); }));
  if (!output.has_file()) return kGood;  // rank 0 tells
  std::optional<Judgement> judgement;
  if (arguments.verify) judgement = judge(run, output.file().y(), tolerance_of(facts.machine));
  output.file().commit();
  const Judgement* const verdict = judgement ? &*judgement : nullptr;
  if (arguments.json)
    print_json(run, facts, verdict);
  else if (arguments.verify)
    print_table(run, facts, verdict);
  else
    print_line(run, facts, arguments.output);
  return verdict == nullptr || verdict->agrees() ? kGood : kCheckFailed;
}

}  // namespace

void add_forward(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("forward", "Run a layer on tokens, from files to a file");
  auto arguments = std::make_shared<ForwardVerb>();
  add_weights(*verb, arguments->weights);
  verb->add_option("--input", arguments->input, "tokens: x, topk_ids, topk_weights")->required();
  verb->add_option("--output", arguments->output, "where y and tokens_per_expert go")->required();
  add_activation(*verb, arguments->activation);
  add_run(*verb, arguments->run);
  verb->add_flag("--verify",
                 arguments->verify,
                 "compare with the fp64 reference; exit code 1 when it disagrees (the output is "
                 "written all the same)");
  verb->add_flag("--json", arguments->json, "print facts as JSON");
  verb->callback([&action, arguments] { action = [arguments] { return forward(*arguments); }; });
}

}  // namespace megamoe::cli
