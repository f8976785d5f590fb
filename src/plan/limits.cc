#include "plan/limits.hpp"

#include "base/check.hpp"

namespace megamoe {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

}  // namespace

Limits cpu_limits(int workers, PoolFormatOf pool_format) {
  require(workers >= 1,
          ErrorCode::kInvalidArgument,
          "workers is ",
          workers,
          "; a rank needs at least 1");
  return {.machine = MachineKind::kCpu,
          .workers = workers,
          .pool_bytes = 128 * kMiB,
          .pool_format = pool_format,
          .tiles = kCpuTiles,
          .channels = kCpuChannels};
}

}  // namespace megamoe
