#include "base/check.hpp"
#include "runtime/gpu/gpu_machine.hpp"

namespace megamoe {

std::string why_no_gpu_machine(const std::string& name) {
  return sentence("machine ", name, " is not in this build: it has cpu only");
}

std::string why_no_gpu_processes(int) {
  return "this build has no GPU machine";
}

std::unique_ptr<RankMachine> make_gpu_machine(const std::string& name,
                                              const LayerOptions&,
                                              const RankPlace&) {
  throw Error(ErrorCode::kUnsupportedMachine, why_no_gpu_machine(name));
}

Limits limits_of_gpu_machine(const std::string& name, const LayerOptions&) {
  throw Error(ErrorCode::kUnsupportedMachine, why_no_gpu_machine(name));
}

CardSurvey survey_cards() {
  return {.versions = "this build has no GPU machine", .cards = {}};
}

}  // namespace megamoe
