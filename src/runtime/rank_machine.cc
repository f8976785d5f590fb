#include "runtime/rank_machine.hpp"

#include "base/check.hpp"
#include "runtime/cpu_machine.hpp"
#include "runtime/gpu/gpu_machine.hpp"

namespace megamoe {
namespace {

constexpr const char* kCpu = "cpu";
constexpr const char* kAuto = "auto";

void require_known(const LayerOptions& options) {
  const std::string& name = options.machine;
  require(name == kAuto || name == kCpu || find_gpu_kind(name) != nullptr,
          ErrorCode::kInvalidArgument,
          "machine is \"",
          name,
          "\"; there are auto, ",
          machine_names());
  require(options.numerics.empty() || options.numerics == "fast" || options.numerics == "exact",
          ErrorCode::kInvalidArgument,
          "numerics is \"",
          options.numerics,
          "\"; there are fast and exact");
}

/// What auto stands for; null: the CPU.
const GpuKind* usual_gpu() {
  for (const GpuKind& kind : kGpuKinds)
    if (kind.is_for_auto && why_no_gpu_machine(kind).empty()) return &kind;
  return nullptr;
}

/// Of one that can run here; null: the CPU. For ranks that are processes auto is the CPU: asking
/// for a GPU would start its driver in a parent that is going to fork.
const GpuKind* chosen_gpu(const LayerOptions& options, const RankPlace& place) {
  require_known(options);
  const std::string& name = options.machine;
  if (name == kCpu) return nullptr;
  const bool asks_for_cpu = options.workers != 0 || !options.instruction_set.empty();
  if (name == kAuto) return asks_for_cpu || !place.is_in_process ? nullptr : usual_gpu();
  const GpuKind& kind = *find_gpu_kind(name);
  require_numerics(kind, options);
  const std::string why_not = why_no_gpu_machine(kind);
  require(why_not.empty(), ErrorCode::kUnsupportedMachine, why_not);
  return &kind;
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

void require_gpu_options(const GpuKind& kind, const LayerOptions& options) {
  require(options.workers == 0,
          ErrorCode::kInvalidArgument,
          "workers is ",
          options.workers,
          "; the ",
          kind.name,
          " machine takes num_sms");
  require(options.instruction_set.empty(),
          ErrorCode::kInvalidArgument,
          "instruction_set is ",
          options.instruction_set,
          "; the ",
          kind.name,
          " machine has none to choose from");
}

}  // namespace

std::unique_ptr<RankMachine> make_machine(const LayerOptions& options, const RankPlace& place) {
  const GpuKind* const gpu = chosen_gpu(options, place);
  if (gpu == nullptr) {
    require_cpu_options(options);
    return std::make_unique<CpuMachine>(options, place.ranks);
  }
  require_gpu_options(*gpu, options);
  return make_gpu_machine(*gpu, options, place);
}

std::string why_no_rank_processes(const LayerOptions& options, int ranks) {
  require_known(options);
  const GpuKind* const gpu = find_gpu_kind(options.machine);
  if (gpu == nullptr) return {};
  const std::string why_not = why_no_gpu_machine(*gpu);
  return why_not.empty() ? why_no_gpu_processes(ranks) : why_not;
}

std::string name_of_machine(const LayerOptions& options, const RankPlace& place) {
  const GpuKind* const gpu = chosen_gpu(options, place);
  return gpu == nullptr ? kCpu : std::string(gpu->name);
}

Limits limits_of_machine(const LayerOptions& options, const RankPlace& place) {
  const GpuKind* const gpu = chosen_gpu(options, place);
  if (gpu == nullptr) {
    require_cpu_options(options);
    return CpuMachine::limits_for(options, place.ranks);
  }
  require_gpu_options(*gpu, options);
  return limits_of_gpu_machine(*gpu, options);
}

}  // namespace megamoe
