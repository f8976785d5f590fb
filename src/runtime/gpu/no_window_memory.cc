#include "base/check.hpp"
#include "runtime/gpu/window_memory.hpp"

namespace megamoe {

std::string why_no_windows() {
  return "this build has no NCCL, through whose windows rank processes share memory of their cards";
}

std::unique_ptr<DeviceMemory> make_window_memory(int) {
  throw Error(ErrorCode::kUnsupportedMachine, why_no_windows());
}

}  // namespace megamoe
