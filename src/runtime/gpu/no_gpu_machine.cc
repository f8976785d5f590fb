#include "base/check.hpp"
#include "runtime/gpu/gpu_machine.hpp"

namespace megamoe {

std::string why_no_gpu_machine(const GpuKind& kind) {
  return sentence("machine ", kind.name, " is not in this build: it has cpu only");
}

std::string why_no_gpu_processes(int) {
  return "this build has no GPU machine";
}

std::unique_ptr<RankMachine> make_gpu_machine(const GpuKind& kind,
                                              const LayerOptions&,
                                              const RankPlace&) {
  throw Error(ErrorCode::kUnsupportedMachine, why_no_gpu_machine(kind));
}

Limits limits_of_gpu_machine(const GpuKind& kind, const LayerOptions&) {
  throw Error(ErrorCode::kUnsupportedMachine, why_no_gpu_machine(kind));
}

CardSurvey survey_cards() {
  return {.versions = "this build has no GPU machine", .cards = {}};
}

}  // namespace megamoe
