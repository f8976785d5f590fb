#include "megamoe/computer.hpp"

#include <functional>

#include "machine/cpu/tile/instruction_set.hpp"
#include "megamoe/error.hpp"
#include "runtime/gpu/gpu_machine.hpp"
#include "runtime/group/life_line.hpp"
#include "runtime/memory/available.hpp"
#include "runtime/memory/segment.hpp"
#include "runtime/rank_machine.hpp"

namespace megamoe {
namespace {

Ability tried(std::string name, const std::function<void()>& what) {
  try {
    what();
    return {std::move(name), ""};
  } catch (const Error& error) {
    return {std::move(name), error.what()};
  }
}

}  // namespace

std::string machine_of(const LayerOptions& options) {
  static_cast<void>(limits_of_machine(options, {}));  // throws for what it can't be
  return name_of_machine(options, {});
}

std::string why_no_processes(const LayerOptions& options, int ranks) {
  return why_no_rank_processes(options, ranks);
}

Computer examine_computer() {
  constexpr std::uint64_t kPage = 4096;
  const AvailableMemory memory = available_memory();
  LayerOptions cpu_only;
  cpu_only.machine = "cpu";
  Computer computer;
  computer.cores = limits_of_machine(cpu_only, {}).workers;
  for (const cpu::InstructionSet set : cpu::supported_instruction_sets())
    computer.instruction_sets.emplace_back(cpu::name(set));
  computer.available_memory = memory.bytes;
  computer.memory_bound = memory.source;
  std::vector<std::string> names = {"cpu"};
  for (const GpuKind& kind : kGpuKinds)
    names.emplace_back(kind.name);
  for (const std::string& name : names)
    computer.machines.push_back(tried(name, [&] {
      LayerOptions options;
      options.machine = name;
      static_cast<void>(limits_of_machine(options, {}));
    }));
  CardSurvey survey = survey_cards();
  computer.cuda = std::move(survey.versions);
  computer.cards = std::move(survey.cards);
  computer.process_memory = tried("shared memory", [] {
    require_memory(1, kPage);  // past a limit the attempt would end this process
    Segment::shareable(kPage);
  });
  computer.process_watch = tried("death watch", [&] { computer.watched_by = LifeLine().kind(); });
  return computer;
}

}  // namespace megamoe
