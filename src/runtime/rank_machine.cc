#include "runtime/rank_machine.hpp"

#include "base/check.hpp"
#include "runtime/cpu_machine.hpp"

namespace megamoe {
namespace {

/// Without a GPU machine in the build, auto is the CPU.
void require_cpu(const std::string& name) {
  require(name != "sm90" && name != "sm100",
          ErrorCode::kUnsupportedMachine,
          "machine ",
          name,
          " is not in this build: it has cpu only");
  require(name == "auto" || name == "cpu",
          ErrorCode::kInvalidArgument,
          "machine is \"",
          name,
          "\"; there are auto, cpu, sm90 and sm100");
}

}  // namespace

std::unique_ptr<RankMachine> make_machine(const LayerOptions& options, int ranks) {
  require_cpu(options.machine);
  return std::make_unique<CpuMachine>(options, ranks);
}

Limits limits_of_machine(const LayerOptions& options, int ranks) {
  require_cpu(options.machine);
  return CpuMachine::limits_for(options, ranks);
}

}  // namespace megamoe
