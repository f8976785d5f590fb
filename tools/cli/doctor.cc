#include <sys/resource.h>
#include <sys/utsname.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/check.hpp"
#include "cli/arguments.hpp"
#include "cli/table.hpp"
#include "cli/verbs.hpp"
#include "megamoe/computer.hpp"
#include "megamoe/launch.hpp"
#include "megamoe/layer.hpp"
#include "megamoe/version.hpp"

namespace megamoe::cli {
namespace {

enum class Verdict : std::uint8_t {
  kGood,
  kSlower,  ///< all works, not as well as it could
  kAbsent,  ///< one thing doesn't work here, others do
};

std::string_view word(Verdict verdict) {
  switch (verdict) {
    case Verdict::kGood: return "ok";
    case Verdict::kSlower: return "slower";
    case Verdict::kAbsent: return "no";
  }
  return "unknown";
}

struct Finding {
  std::string name;
  Verdict verdict = Verdict::kGood;
  std::string text;
};

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& each : words)
    text += (text.empty() ? "" : ", ") + each;
  return text;
}

Finding of_ability(std::string name, const Ability& ability, std::string when_good) {
  if (ability.works()) return {std::move(name), Verdict::kGood, std::move(when_good)};
  return {std::move(name), Verdict::kAbsent, ability.why_not};
}

Finding versions() {
  utsname system{};
  uname(&system);
  return {"version",
          Verdict::kGood,
          sentence("megamoe ",
                   kVersion,
                   ", built by ",
                   __VERSION__,
                   "; ",
                   system.sysname,
                   " ",
                   system.release,
                   ", ",
                   system.machine)};
}

Finding huge_pages() {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string line;
  std::getline(file, line);
  if (line.find("[always]") != std::string::npos || line.find("[madvise]") != std::string::npos)
    return {"huge pages", Verdict::kGood, "weights get them"};
  return {"huge pages",
          Verdict::kSlower,
          line.empty() ? "this kernel has no transparent huge pages"
                       : "transparent huge pages are off: weights lie in small pages"};
}

/// What a limit of this process holds back; `least` is what some runs need.
Finding limit(const std::string& name,
              decltype(RLIMIT_AS) resource,
              rlim_t least,
              const std::string& needed_by) {
  rlimit bound{};
  getrlimit(resource, &bound);
  if (bound.rlim_cur == RLIM_INFINITY) return {name, Verdict::kGood, "no limit"};
  if (bound.rlim_cur >= least) return {name, Verdict::kGood, std::to_string(bound.rlim_cur)};
  return {name, Verdict::kSlower, sentence(bound.rlim_cur, "; ", needed_by)};
}

/// A layer of two ranks that is there to be run, not for its result.
std::string run_tiny_layer(Group group) {
  const Problem problem{.ranks = 2, .experts = 2, .hidden = 32, .intermediate = 32};
  LayerOptions options;
  options.machine = "cpu";
  options.workers = 1;
  options.timeout_ms = 10'000;
  Layer layer(group, problem, options);
  const std::vector<std::uint8_t> zeros(std::size_t{64} * 16);
  layer.set_expert(0,
                   {.linear1 = zeros.data(),
                    .linear1_scale = zeros.data(),
                    .linear2 = zeros.data(),
                    .linear2_scale = zeros.data()});
  const std::int64_t id = 1 - group.rank();
  const float weight = 1;
  layer.set_routing(0, 1, &id, &weight);
  alignas(16) std::uint16_t output[32];
  static_cast<void>(layer.forward({.num_tokens = 1, .output = output}));
  return layer.machine();
}

using Launch = LaunchResult(int, const RankBody&);

Finding trial(const std::string& name, Launch* launch) {
  try {
    const LaunchResult result = launch(2, run_tiny_layer);
    if (result.is_good())
      return {name, Verdict::kGood, "two ranks ran a layer on " + result.ranks[0].result};
    return {name, Verdict::kAbsent, result.cause().sentence};
  } catch (const Error& error) {
    return {name, Verdict::kAbsent, error.what()};
  }
}

/// The cards, and for each pair of them whether a layer can have ranks on both.
void add_cards(const Computer& computer, std::vector<Finding>& found) {
  const bool has_cards = !computer.cards.empty();
  found.push_back({"cuda", has_cards ? Verdict::kGood : Verdict::kAbsent, computer.cuda});
  for (std::size_t i = 0; i < computer.cards.size(); ++i) {
    const Card& card = computer.cards[i];
    std::string gaps;
    for (const int other : card.unreachable)
      gaps += (gaps.empty() ? "; can't reach card " : ", ") + std::to_string(other);
    found.push_back(
        {sentence("card ", i),
         gaps.empty() ? Verdict::kGood : Verdict::kSlower,
         sentence(card.name,
                  ", ",
                  card.sms,
                  " SMs, ",
                  bytes_text(card.memory),
                  ", compute capability ",
                  card.capability,
                  computer.cards.size() > 1 && gaps.empty() ? "; reaches all others" : gaps)});
  }
}

struct Diagnosis {
  std::vector<Finding> findings;
  bool can_run = false;
};

Diagnosis diagnose() {
  constexpr rlim_t kDescriptors = 256;          // 72 ranks that each know all others
  constexpr rlim_t kBytes = rlim_t{16} << 30U;  // a large layer of one rank
  // Before any thread is started here: the ranks are forked.
  const Finding processes = trial("ranks as processes", &launch_processes);
  const Finding threads = trial("ranks as threads", &launch_threads);
  const Computer computer = examine_computer();
  Diagnosis diagnosis;
  diagnosis.can_run = processes.verdict == Verdict::kGood || threads.verdict == Verdict::kGood;
  std::vector<Finding>& found = diagnosis.findings;
  found.push_back(versions());
  found.push_back({"cores", Verdict::kGood, sentence(computer.cores, " usable")});
  found.push_back(
      {"instruction sets",
       computer.instruction_sets.size() > 1 ? Verdict::kGood : Verdict::kSlower,
       sentence(
           computer.instruction_sets.back(), " is used; of ", joined(computer.instruction_sets))});
  found.push_back({"memory",
                   Verdict::kGood,
                   sentence(bytes_text(computer.available_memory),
                            " available; bounded by ",
                            computer.memory_bound)});
  found.push_back(huge_pages());
  found.push_back(of_ability("shared memory",
                             computer.process_memory,
                             "memfd works; /dev/shm is not needed, whatever its size"));
  found.push_back(of_ability("death of a rank",
                             computer.process_watch,
                             "noticed at once, through " + computer.watched_by));
  found.push_back(limit("file size limit",
                        RLIMIT_FSIZE,
                        kBytes,
                        "a rank's symmetric memory and an output may not be larger (ulimit -f)"));
  found.push_back(limit("open files limit",
                        RLIMIT_NOFILE,
                        kDescriptors,
                        "dozens of rank processes need more (ulimit -n)"));
  found.push_back(limit("address space limit",
                        RLIMIT_AS,
                        kBytes,
                        "weights, symmetric memory and mapped files must fit (ulimit -v)"));
  found.push_back(processes);
  found.push_back(threads);
  add_cards(computer, found);
  for (const Ability& machine : computer.machines)
    found.push_back(
        of_ability("machine " + machine.name,
                   machine,
                   machine.name == kEmulatedMachine
                       ? "can be chosen, for tests: functional emulation, whose times mean nothing"
                       : "can be chosen"));
  return diagnosis;
}

void print_json(const Diagnosis& diagnosis) {
  nlohmann::ordered_json json = {{"version", kVersion},
                                 {"can_run", diagnosis.can_run},
                                 {"findings", nlohmann::ordered_json::array()}};
  for (const Finding& finding : diagnosis.findings)
    json["findings"].push_back(
        {{"name", finding.name}, {"verdict", word(finding.verdict)}, {"text", finding.text}});
  std::cout << json.dump(2) << "\n";
}

void print_lines(const Diagnosis& diagnosis) {
  FactTable table;
  for (const Finding& finding : diagnosis.findings) {
    std::string verdict(word(finding.verdict));
    verdict.resize(std::max<std::size_t>(verdict.size(), 8), ' ');
    table.add(finding.name, verdict + finding.text);
  }
  table.print(std::cout);
  std::cout << (diagnosis.can_run ? "layers can be run here\n" : "no layer can be run here\n");
}

ExitCode doctor(bool as_json) {
  const Diagnosis diagnosis = diagnose();
  if (as_json)
    print_json(diagnosis);
  else
    print_lines(diagnosis);
  return diagnosis.can_run ? kGood : kNoSuchMachine;
}

}  // namespace

void add_doctor(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand(
      "doctor", "Say what this computer can do and what not, and why; exit code 3 if nothing");
  auto as_json = std::make_shared<bool>(false);
  verb->add_flag("--json", *as_json, "print the findings as JSON");
  verb->callback([&action, as_json] { action = [as_json] { return doctor(*as_json); }; });
}

}  // namespace megamoe::cli
