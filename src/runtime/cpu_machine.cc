#include "runtime/cpu_machine.hpp"

#include <sched.h>

#include <algorithm>
#include <thread>

#include "base/check.hpp"

namespace megamoe {
namespace {

constexpr int kMostWorkers = 1024;

/// Cores that this process may run on.
int usable_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof cores, &cores) == 0) return CPU_COUNT(&cores);
  return static_cast<int>(std::thread::hardware_concurrency());
}

int num_workers(const LayerOptions& options, int ranks) {
  require(options.workers >= 0 && options.workers <= kMostWorkers,
          ErrorCode::kInvalidArgument,
          "workers is ",
          options.workers,
          "; 1 to ",
          kMostWorkers,
          " are possible, and 0 for as many as a rank's share of the cores");
  if (options.workers > 0) return options.workers;
  return std::max(1, usable_cores() / std::max(1, ranks));
}

cpu::InstructionSet instruction_set(const LayerOptions& options) {
  return options.instruction_set.empty() ? cpu::best_instruction_set()
                                         : cpu::instruction_set_of(options.instruction_set);
}

class CpuWeights : public MachineWeights {
 public:
  explicit CpuWeights(const Problem& problem)
      : weights_(problem), bytes_(cpu::RankWeights::bytes(problem)) {}

  void pack(int local_expert, const WeightView& view) override {
    weights_.pack(local_expert, view);
  }
  std::uint64_t bytes() const override { return bytes_; }
  const cpu::RankWeights& packed() const { return weights_; }

 private:
  cpu::RankWeights weights_;
  std::uint64_t bytes_;
};

double milliseconds(std::int64_t from_ns, std::int64_t to_ns) {
  return static_cast<double>(to_ns - from_ns) * 1e-6;
}

}  // namespace

Limits CpuMachine::limits_for(const LayerOptions& options, int ranks) {
  return cpu_limits(num_workers(options, ranks), &cpu::pool_format);
}

CpuMachine::CpuMachine(const LayerOptions& options, int ranks)
    : limits_(limits_for(options, ranks)), workers_(limits_.workers, instruction_set(options)) {}

std::string CpuMachine::name() const {
  return sentence("cpu/", cpu::name(workers_.kernel().instruction_set()));
}

std::unique_ptr<MachineWeights> CpuMachine::make_weights(const Problem& problem) const {
  return std::make_unique<CpuWeights>(problem);
}

void CpuMachine::require_stream(const CallOrder& order) const {
  require(!order.stream,
          ErrorCode::kInvalidArgument,
          "a stream is given; the cpu machine has none: forward() does the call");
}

void CpuMachine::begin(const Call& call,
                       const Plan& plan,
                       const MachineWeights& weights,
                       const CallOrder& order) {
  const cpu::BlockChannels channels{.linear1 = plan.kernel.linear1_block_n,
                                    .linear2 = plan.kernel.linear2_block_n};
  // The only weights that this machine makes.
  const auto& packed = static_cast<const CpuWeights&>(weights).packed();
  // Who gave up says so in the fault record.
  static_cast<void>(workers_.run(call, packed, channels, order.timeout_ms));
}

std::vector<double> CpuMachine::time_calls(const Call& call,
                                           const Plan& plan,
                                           const MachineWeights& weights,
                                           std::uint64_t timeout_ms,
                                           const TimedCalls& what) {
  constexpr double kMicrosecondsPerMillisecond = 1e3;
  std::vector<double> microseconds;
  for (int i = 0; i < what.warm_up + what.calls; ++i) {
    begin(call, plan, weights, {.timeout_ms = timeout_ms});
    if (i >= what.warm_up) microseconds.push_back(times().total * kMicrosecondsPerMillisecond);
  }
  return microseconds;
}

PhaseTimes CpuMachine::times() const {
  const cpu::CallTimes& t = workers_.times();
  return {.route = milliseconds(t.start, t.at(Milestone::kRouted)),
          .compute = milliseconds(t.at(Milestone::kRouted), t.at(Milestone::kComputed)),
          .meet = milliseconds(t.at(Milestone::kComputed), t.at(Milestone::kMet)),
          .combine = milliseconds(t.at(Milestone::kMet), t.at(Milestone::kCombined)),
          .finish = milliseconds(t.at(Milestone::kCombined), t.end),
          .total = milliseconds(t.start, t.end)};
}

}  // namespace megamoe
