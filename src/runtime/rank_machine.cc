#include "runtime/rank_machine.hpp"

#include "base/check.hpp"
#include "runtime/cpu_machine.hpp"
#include "runtime/gpu/gpu_machine.hpp"

namespace megamoe {
namespace {

constexpr const char* kCpu = "cpu";
constexpr const char* kSm90 = "sm90";
constexpr const char* kSm100 = "sm100";

void require_known(const LayerOptions& options) {
  const std::string& name = options.machine;
  require(name == "auto" || name == kCpu || name == kSm90 || name == kSm100,
          ErrorCode::kInvalidArgument,
          "machine is \"",
          name,
          "\"; there are auto, cpu, sm90 and sm100");
  require(options.numerics.empty() || options.numerics == "fast" || options.numerics == "exact",
          ErrorCode::kInvalidArgument,
          "numerics is \"",
          options.numerics,
          "\"; there are fast and exact");
}

/// The machine's own name, of one that can run here. For ranks that are processes auto is the CPU:
/// asking for a GPU would start its driver in a parent that is going to fork.
std::string chosen(const LayerOptions& options, const RankPlace& place) {
  require_known(options);
  const std::string& name = options.machine;
  if (name == kCpu) return kCpu;
  const bool asks_for_cpu = options.workers != 0 || !options.instruction_set.empty();
  if (name == "auto" && (asks_for_cpu || !place.is_in_process)) return kCpu;
  if (name == "auto") return why_no_gpu_machine(kSm90).empty() ? kSm90 : kCpu;
  const std::string why_not = why_no_gpu_machine(name);
  require(why_not.empty(), ErrorCode::kUnsupportedMachine, why_not);
  return name;
}

/// What only GPUs have, asked of a CPU.
void require_cpu_options(const LayerOptions& options) {
  require(options.numerics != "fast",
          ErrorCode::kUnsupportedMachine,
          "numerics is fast; the cpu machine has exact only");
  require(options.num_sms == 0,
          ErrorCode::kInvalidArgument,
          "num_sms is ",
          options.num_sms,
          "; the cpu machine takes workers");
}

void require_gpu_options(const std::string& name, const LayerOptions& options) {
  require(options.workers == 0,
          ErrorCode::kInvalidArgument,
          "workers is ",
          options.workers,
          "; the ",
          name,
          " machine takes num_sms");
  require(options.instruction_set.empty(),
          ErrorCode::kInvalidArgument,
          "instruction_set is ",
          options.instruction_set,
          "; the ",
          name,
          " machine has none to choose from");
}

}  // namespace

std::unique_ptr<RankMachine> make_machine(const LayerOptions& options, const RankPlace& place) {
  const std::string name = chosen(options, place);
  if (name == kCpu) {
    require_cpu_options(options);
    return std::make_unique<CpuMachine>(options, place.ranks);
  }
  require_gpu_options(name, options);
  return make_gpu_machine(name, options, place);
}

std::string why_no_rank_processes(const LayerOptions& options, int ranks) {
  require_known(options);
  if (options.machine == kCpu || options.machine == "auto") return {};
  const std::string why_not = why_no_gpu_machine(options.machine);
  return why_not.empty() ? why_no_gpu_processes(ranks) : why_not;
}

Limits limits_of_machine(const LayerOptions& options, const RankPlace& place) {
  const std::string name = chosen(options, place);
  if (name == kCpu) {
    require_cpu_options(options);
    return CpuMachine::limits_for(options, place.ranks);
  }
  require_gpu_options(name, options);
  return limits_of_gpu_machine(name, options);
}

}  // namespace megamoe
