#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "base/check.hpp"
#include "cli/bench_record.hpp"
#include "cli/bench_tokens.hpp"
#include "cli/layer_run.hpp"
#include "cli/numbers.hpp"
#include "cli/problem_json.hpp"
#include "cli/progress.hpp"
#include "cli/verbs.hpp"
#include "megamoe/ceilings.hpp"
#include "megamoe/version.hpp"
#include "plan/explain.hpp"

namespace megamoe::cli {
namespace {

struct BenchVerb {
  ShapeArguments shape;
  std::string weights, input;
  WeightOptions weight_options;
  ActivationArguments activation;
  RunArguments run;
  std::vector<int> tokens;  ///< empty: the machine's usual ones
  int calls = 20;
  double seconds = 5;
  std::uint64_t seed = 1;
  bool json = false;
};

/// What one rank measured for each T, as text for the launcher.
class RankBench {
 public:
  RankBench(const BenchVerb& arguments, const BenchTokens& tokens)
      : arguments_(arguments), tokens_(tokens) {}

  std::string run(Layer& layer, Group& group) {
    nlohmann::json records = nlohmann::json::array();
    for (const int count : arguments_.tokens)
      records.push_back(layer.device() < 0 ? measure(layer, group, count)
                                           : measure_on_card(layer, group, count));
    return nlohmann::json{{"machine", layer.machine()},
                          {"is_gpu", layer.device() >= 0},
                          {"cards", cards(layer, group)},
                          {"workers", layer.workers()},
                          {"weight_bytes", layer.weight_bytes()},
                          {"symmetric_bytes", layer.symmetric_bytes()},
                          {"records", records}}
        .dump();
  }

 private:
  using Clock = std::chrono::steady_clock;

  /// Every call has other tokens, so that its experts' weights come from memory and not from a
  /// cache.
  nlohmann::json measure(Layer& layer, Group& group, int count) {
    std::vector<double> times;
    Tally tally;
    CallReport report;
    const int calls = agreed_calls(layer, group, count);
    Progress progress(sentence("calls of ", count, " tokens"),
                      static_cast<std::uint64_t>(calls),
                      group.rank() == 0);
    for (int call = 0; call < calls; ++call) {
      progress.advance_to(static_cast<std::uint64_t>(call));
      tokens_.load(layer, group.rank(), count, call + 1);
      const auto start = Clock::now();
      report = layer.forward({.num_tokens = count, .output = output(layer, count)});
      times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
      tally.add(report);
    }
    return record_of(times, tally, report);
  }

  /// How many cards the ranks are on; 0 on a CPU.
  static int cards(const Layer& layer, Group& group) {
    std::set<std::string> seen;
    for (const std::string& device : group.gather(std::to_string(layer.device())))
      if (device != "-1") seen.insert(device);
    return static_cast<int>(seen.size());
  }

  /// The same call again and again, with caches flushed in between, by the card's clock.
  nlohmann::json measure_on_card(Layer& layer, Group& group, int count) {
    tokens_.load(layer, group.rank(), count, 0);
    group.gather("");
    const CallTimings timings = layer.time_calls({.num_tokens = count, .calls = arguments_.calls});
    Tally tally;
    for (std::size_t call = 0; call < timings.microseconds.size(); ++call)
      tally.add(timings.last);
    return record_of(timings.microseconds, tally, timings.last);
  }

  /// What the experts of a rank got, over calls.
  struct Tally {
    std::uint64_t rows = 0, active = 0, moved = 0;

    void add(const CallReport& report) {
      for (const std::uint32_t expert_rows : report.expert_rows) {
        rows += expert_rows;
        active += expert_rows > 0 ? 1 : 0;
      }
      moved += report.bytes_pulled + report.bytes_pushed;
    }
  };

  static nlohmann::json record_of(const std::vector<double>& microseconds,
                                  const Tally& tally,
                                  const CallReport& last) {
    const PhaseTimes& t = last.times;
    return {{"microseconds", microseconds},
            {"rows", tally.rows},
            {"active", tally.active},
            {"moved", tally.moved},
            {"block_m", last.block_m},
            {"phases", {t.route, t.compute, t.meet, t.combine, t.finish, t.total}}};
  }

  /// As many calls as asked for, fewer when they are slow; every rank makes the same number.
  int agreed_calls(Layer& layer, Group& group, int count) {
    tokens_.load(layer, group.rank(), count, 0);
    const auto start = Clock::now();
    static_cast<void>(layer.forward({.num_tokens = count, .output = output(layer, count)}));
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    const auto affordable = static_cast<int>(arguments_.seconds / std::max(seconds, 1e-9));
    const std::vector<std::string> all = group.gather(std::to_string(affordable));
    return std::clamp(std::stoi(all[0]), std::min(3, arguments_.calls), arguments_.calls);
  }

  std::uint16_t* output(const Layer& layer, int count) {
    const std::size_t values =
        static_cast<std::size_t>(count) * static_cast<std::size_t>(layer.problem().hidden);
    if (output_.size() < values / kPackWidth + 1) output_.resize(values / kPackWidth + 1);
    return output_.data()->values;
  }

  static constexpr std::size_t kPackWidth = 8;
  struct alignas(16) Pack {
    std::uint16_t values[kPackWidth];
  };

  const BenchVerb& arguments_;
  const BenchTokens& tokens_;
  std::vector<Pack> output_;
};

/// A call ends for all ranks together, so its time is the least of the ranks': of the one that came
/// last. Rows and experts are all ranks'.
std::vector<BenchRecord> gather(const BenchVerb& arguments,
                                const std::vector<nlohmann::json>& ranks) {
  std::vector<BenchRecord> records;
  for (std::size_t i = 0; i < arguments.tokens.size(); ++i) {
    const auto& first = ranks[0]["records"][i];
    const auto& t = first["phases"];
    BenchRecord record{.tokens = arguments.tokens[i],
                       .microseconds = first["microseconds"],
                       .block_m = first["block_m"],
                       .phases = {t[0], t[1], t[2], t[3], t[4], t[5]}};
    for (const nlohmann::json& rank : ranks) {
      const auto& of_rank = rank["records"][i];
      for (std::size_t call = 0; call < record.microseconds.size(); ++call)
        record.microseconds[call] =
            std::min(record.microseconds[call], of_rank["microseconds"][call].get<double>());
      record.rows += of_rank["rows"].get<std::uint64_t>();
      record.active_experts += of_rank["active"].get<std::uint64_t>();
      record.moved_bytes += of_rank["moved"].get<std::uint64_t>();
    }
    record.rows /= record.microseconds.size();
    record.active_experts /= record.microseconds.size();
    record.moved_bytes /= record.microseconds.size();
    std::sort(record.microseconds.begin(), record.microseconds.end());
    records.push_back(record);
  }
  return records;
}

void print_json(const LayerRun& run,
                const nlohmann::json& rank,
                const std::vector<BenchRecord>& records,
                const Ceilings& ceilings) {
  const Problem& p = run.problem;
  nlohmann::ordered_json json = {{"problem", problem_json(run.problem)},
                                 {"version", kVersion},
                                 {"machine", rank["machine"]},
                                 {"workers", rank["workers"]},
                                 {"launch", run.arguments.launch},
                                 {"weight_bytes", rank["weight_bytes"]},
                                 {"symmetric_bytes", rank["symmetric_bytes"]},
                                 {"ceilings",
                                  {{"read_gb_per_s", ceilings.read_bytes_per_second * 1e-9},
                                   {"gflop_per_s", ceilings.flops_per_second * 1e-9}}},
                                 {"records", nlohmann::ordered_json::array()}};
  for (const BenchRecord& record : records)
    json["records"].push_back(record_json(p, record, ceilings));
  std::cout << json.dump(2) << "\n";
}

std::vector<int> usual_tokens(const std::string& machine) {
  if (is_named_gpu(machine)) return {1, 8, 32, 128, 512, 2048, 8192};
  return {1, 8, 32, 128, 512};
}

/// Of all ranks together: measured here of a CPU, whose ranks share it, else the card's.
Ceilings ceilings_of(const LayerRun& run, const nlohmann::json& rank) {
  if (rank["is_gpu"].get<bool>()) {
    Ceilings all = rank["machine"] == "sm100" ? ceilings_of_b200() : ceilings_of_h200();
    all.read_bytes_per_second *= rank["cards"].get<int>();
    all.flops_per_second *= rank["cards"].get<int>();
    return all;
  }
  LayerOptions options = run.arguments.layer;
  return measure_ceilings(options, rank["workers"].get<int>() * run.problem.ranks);
}

ExitCode bench(BenchVerb arguments) {
  require(!arguments.run.is_rank(),
          ErrorCode::kInvalidArgument,
          "--launch is environment; bench starts its ranks itself, as threads or processes");
  require(!arguments.run.is_emulated(),
          ErrorCode::kInvalidArgument,
          "--machine is ",
          kEmulatedMachine,
          "; the emulation's times say nothing of Blackwell, so bench does not take it");
  if (arguments.tokens.empty()) arguments.tokens = usual_tokens(arguments.run.layer.machine);
  require(arguments.seconds >= 0,
          ErrorCode::kInvalidArgument,
          "--seconds is ",
          arguments.seconds,
          "; it must be at least 0");
  const bool has_files = !arguments.weights.empty() && !arguments.input.empty();
  require(has_files != !arguments.shape.shape.empty(),
          ErrorCode::kInvalidArgument,
          "bench takes either --shape, or --weights and --input");
  const int most = *std::max_element(arguments.tokens.begin(), arguments.tokens.end());
  require(most <= arguments.run.capacity.value_or(most),
          ErrorCode::kInvalidArgument,
          "--tokens has ",
          most,
          "; it must be at most --capacity, ",
          arguments.run.capacity.value_or(most));
  const BenchRun what = has_files ? bench_of_files({arguments.weights, arguments.weight_options},
                                                   arguments.input,
                                                   arguments.activation,
                                                   arguments.run,
                                                   most)
                                  : bench_of_shape(layer_shape(arguments.shape),
                                                   arguments.seed,
                                                   arguments.activation,
                                                   arguments.run,
                                                   most);
  const LayerRun& run = what.run;
  require_possible(run);
  const std::vector<std::string> results = launch(run, [&](Group group) {
    Layer layer = make_layer(group, run);
    return RankBench(arguments, *what.tokens).run(layer, group);
  });
  std::vector<nlohmann::json> ranks;
  for (const std::string& text : results)
    ranks.push_back(nlohmann::json::parse(text));
  const std::vector<BenchRecord> records = gather(arguments, ranks);
  const Ceilings ceilings = ceilings_of(run, ranks[0]);
  if (arguments.json)
    print_json(run, ranks[0], records, ceilings);
  else if (ranks[0]["is_gpu"].get<bool>())
    print_gpu_table(run.problem, records, ceilings);
  else
    print_cpu_table(run.problem, records, ceilings);
  return kGood;
}

void add_tokens(CLI::App& verb, std::vector<int>& to) {
  verb.add_option_function<std::vector<std::string>>(
          "--tokens",
          [&to](const std::vector<std::string>& texts) {
            to.clear();
            for (const std::string& text : texts)
              to.push_back(static_cast<int>(
                  parse_whole_number("--tokens", text, {.least = 1, .most = kMaxCapacity})));
          },
          "of a rank, a list (default 1,8,32,128,512; on sm90 and sm100 also 2048,8192)")
      ->delimiter(',');
}

}  // namespace

void add_bench(CLI::App& app, Action& action) {
  CLI::App* verb =
      app.add_subcommand("bench", "Time a layer for some numbers of tokens; asserts nothing");
  auto arguments = std::make_shared<BenchVerb>();
  add_shape(*verb, arguments->shape);
  verb->add_option("--weights", arguments->weights, "a layer of files instead of a synthetic one");
  verb->add_option("--input", arguments->input, "with --weights");
  add_layer(*verb, arguments->weight_options);
  add_tokens(*verb, arguments->tokens);
  add_whole_number(*verb,
                   "--calls",
                   arguments->calls,
                   {.least = 1},
                   "timed calls of each (default 20; fewer when they take long)");
  add_number(*verb, "--seconds", arguments->seconds, "about how long each may take (default 5)");
  add_whole_number(
      *verb, "--seed", arguments->seed, {.least = 0}, "of a synthetic layer (default 1)");
  add_activation(*verb, arguments->activation);
  add_run(*verb, arguments->run);
  verb->add_flag("--json", arguments->json, "print records as JSON");
  verb->callback([&action, arguments] { action = [arguments] { return bench(*arguments); }; });
}

}  // namespace megamoe::cli
