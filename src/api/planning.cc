#include "megamoe/planning.hpp"

#include "plan/choose.hpp"
#include "plan/limits.hpp"
#include "runtime/cpu_machine.hpp"
#include "runtime/gpu/sm100_limits.hpp"
#include "runtime/gpu/sm90_limits.hpp"
#include "runtime/station.hpp"

namespace megamoe {
namespace {

constexpr int kSmsOfH200 = 132;
constexpr int kSmsOfB200 = 148;

Limits limits_of(const PlannedMachine& machine, const Problem& problem, const LayerOptions& asked) {
  switch (machine.kind) {
    case MachineKind::kCpu: {
      LayerOptions options;
      options.workers = machine.workers;
      return CpuMachine::limits_for(options, problem.ranks);
    }
    case MachineKind::kSm90:
      return sm90_limits(machine.workers > 0 ? machine.workers : kSmsOfH200, sm90_operands(asked));
    case MachineKind::kSm100:
      return sm100_limits(machine.workers > 0 ? machine.workers : kSmsOfB200);
  }
  return {};
}

}  // namespace

Plan plan_layer(const Problem& problem,
                const PlannedMachine& machine,
                const LayerOptions& options) {
  validate(problem);
  return choose_plan(problem, limits_of(machine, problem, options), plan_request(options));
}

}  // namespace megamoe
