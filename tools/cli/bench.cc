#include <algorithm>
#include <chrono>
#include <iomanip>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/check.hpp"
#include "cli/bench_tokens.hpp"
#include "cli/layer_run.hpp"
#include "cli/numbers.hpp"
#include "cli/problem_json.hpp"
#include "cli/progress.hpp"
#include "cli/table.hpp"
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
  std::vector<int> tokens = {1, 8, 32, 128, 512};
  int calls = 20;
  double seconds = 5;
  std::uint64_t seed = 1;
  bool json = false;
};

/// One T: what a rank's clock saw, and what had to be done.
struct Record {
  int tokens = 0;  ///< of a rank
  std::vector<double> microseconds;
  std::uint64_t rows = 0;  ///< (token, expert) pairs of all ranks, of the median call's kind
  std::uint64_t active_experts = 0;  ///< with rows

  double median() const { return microseconds[microseconds.size() / 2]; }  // sorted
};

/// Bytes of an expert as canonical MXFP4: codes and a scale for 32.
std::uint64_t expert_bytes(const Problem& p) {
  const auto values =
      3 * static_cast<std::uint64_t>(p.hidden) * static_cast<std::uint64_t>(p.intermediate);
  return values / 2 + values / 32;
}

/// What must cross the memory bus whatever the implementation: active experts' weights, token rows
/// in, y out.
std::uint64_t needed_bytes(const Problem& p, const Record& r) {
  const auto tokens = static_cast<std::uint64_t>(r.tokens) * static_cast<std::uint64_t>(p.ranks);
  const auto hidden = static_cast<std::uint64_t>(p.hidden);
  return r.active_experts * expert_bytes(p) + tokens * (hidden + hidden / 32 + 2 * hidden);
}

double needed_flops(const Problem& p, const Record& r) {
  return 6.0 * p.hidden * p.intermediate * static_cast<double>(r.rows);
}

/// What one rank measured for each T, as text for the launcher.
class RankBench {
 public:
  RankBench(const BenchVerb& arguments, const BenchTokens& tokens)
      : arguments_(arguments), tokens_(tokens) {}

  std::string run(Layer& layer, Group& group) {
    nlohmann::json records = nlohmann::json::array();
    for (const int count : arguments_.tokens)
      records.push_back(measure(layer, group, count));
    return nlohmann::json{{"machine", layer.machine()},
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
    std::uint64_t rows = 0;
    std::uint64_t active = 0;
    const int calls = agreed_calls(layer, group, count);
    Progress progress(sentence("calls of ", count, " tokens"),
                      static_cast<std::uint64_t>(calls),
                      group.rank() == 0);
    for (int call = 0; call < calls; ++call) {
      progress.advance_to(static_cast<std::uint64_t>(call));
      tokens_.load(layer, group.rank(), count, call + 1);
      const auto start = Clock::now();
      const CallReport report =
          layer.forward({.num_tokens = count, .output = output(layer, count)});
      times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
      for (const std::uint32_t expert_rows : report.expert_rows) {
        rows += expert_rows;
        active += expert_rows > 0 ? 1 : 0;
      }
    }
    std::sort(times.begin(), times.end());
    return {{"microseconds", times}, {"rows", rows}, {"active", active}};
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

/// Times are rank 0's (a call ends for all ranks together); rows and experts are all ranks'.
std::vector<Record> gather(const BenchVerb& arguments, const std::vector<nlohmann::json>& ranks) {
  std::vector<Record> records;
  for (std::size_t i = 0; i < arguments.tokens.size(); ++i) {
    Record record{.tokens = arguments.tokens[i],
                  .microseconds = ranks[0]["records"][i]["microseconds"]};
    for (const nlohmann::json& rank : ranks) {
      record.rows += rank["records"][i]["rows"].get<std::uint64_t>();
      record.active_experts += rank["records"][i]["active"].get<std::uint64_t>();
    }
    record.rows /= record.microseconds.size();
    record.active_experts /= record.microseconds.size();
    records.push_back(record);
  }
  return records;
}

void print_table(const Problem& problem,
                 const std::vector<Record>& records,
                 const Ceilings& ceilings) {
  std::cout
      << "ceilings here  " << fixed(ceilings.read_bytes_per_second * 1e-9, 1) << " GB/s read, "
      << fixed(ceilings.flops_per_second * 1e-9, 0) << " GFLOP/s\n"
      << "     T  calls   median us      min us      max us     GB/s  of it   GFLOP/s  of it\n";
  for (const Record& r : records) {
    const double seconds = r.median() * 1e-6;
    const double bytes = static_cast<double>(needed_bytes(problem, r)) / seconds;
    const double flops = needed_flops(problem, r) / seconds;
    std::cout << std::setw(6) << r.tokens << std::setw(7) << r.microseconds.size() << std::setw(12)
              << fixed(r.median(), 1) << std::setw(12) << fixed(r.microseconds.front(), 1)
              << std::setw(12) << fixed(r.microseconds.back(), 1) << std::setw(9)
              << fixed(bytes * 1e-9, 1) << std::setw(6)
              << fixed(100 * bytes / ceilings.read_bytes_per_second, 0) << "%" << std::setw(9)
              << fixed(flops * 1e-9, 0) << std::setw(6)
              << fixed(100 * flops / ceilings.flops_per_second, 0) << "%\n";
  }
}

nlohmann::ordered_json record_json(const Problem& problem,
                                   const Record& r,
                                   const Ceilings& ceilings) {
  const double seconds = r.median() * 1e-6;
  const auto bytes = needed_bytes(problem, r);
  const double flops = needed_flops(problem, r);
  return {{"tokens", r.tokens},
          {"calls", r.microseconds.size()},
          {"median_us", r.median()},
          {"min_us", r.microseconds.front()},
          {"max_us", r.microseconds.back()},
          {"rows", r.rows},
          {"active_experts", r.active_experts},
          {"needed_bytes", bytes},
          {"gb_per_s", static_cast<double>(bytes) / seconds * 1e-9},
          {"share_of_read_ceiling",
           static_cast<double>(bytes) / seconds / ceilings.read_bytes_per_second},
          {"tflop_per_s", flops / seconds * 1e-12},
          {"share_of_flop_ceiling", flops / seconds / ceilings.flops_per_second}};
}

void print_json(const LayerRun& run,
                const nlohmann::json& rank,
                const std::vector<Record>& records,
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
  for (const Record& record : records)
    json["records"].push_back(record_json(p, record, ceilings));
  std::cout << json.dump(2) << "\n";
}

ExitCode bench(const BenchVerb& arguments) {
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
  const std::vector<Record> records = gather(arguments, ranks);
  const Ceilings ceilings =
      measure_ceilings(run.arguments.layer, ranks[0]["workers"].get<int>() * run.problem.ranks);
  if (arguments.json)
    print_json(run, ranks[0], records, ceilings);
  else
    print_table(run.problem, records, ceilings);
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
          "of a rank, a list (default 1,8,32,128,512)")
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
