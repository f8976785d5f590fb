#include "plan/limits.hpp"

#include "base/check.hpp"
#include "plan/shared_memory.hpp"

namespace megamoe {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

constexpr std::uint32_t bytes32(int value) {
  return static_cast<std::uint32_t>(value);
}

}  // namespace

PoolFormat sm100_pool_format(const Problem& problem) {
  const Limits limits = sm100_limits(2);
  const int hidden = limits.padded_hidden(problem);
  const int intermediate = limits.padded_intermediate(problem);
  return {.linear1_row_bytes = bytes32(hidden),
          .linear1_scale_bytes = bytes32(hidden / kScaleGroup),
          .linear2_row_bytes = bytes32(intermediate),
          .linear2_scale_bytes = bytes32(intermediate / kScaleGroup)};
}

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
          .channels = kCpuChannels,
          .pipelines = {}};
}

Limits sm100_limits(int num_sms) {
  require(num_sms >= 2,
          ErrorCode::kInvalidArgument,
          "num_sms is ",
          num_sms,
          "; SM100 works in pairs of SMs and needs at least 2");
  return {.machine = MachineKind::kSm100,
          .workers = num_sms / 2 * 2,
          .shared_bytes = kMostSharedBytes,
          .tmem_columns = 512,
          // A pair of CTAs takes two neighbouring blocks of 128 weight rows, so there are evenly
          // many.
          .hidden_granule = 256,
          .intermediate_granule = 128,
          .symmetric_bytes = 90 * kGiB,
          .pool_bytes = kGiB,
          .pool_format = &sm100_pool_format,
          .tiles = kGpuTiles,
          .channels = kSm100Channels,
          .pipelines = kSm100Pipelines};
}

}  // namespace megamoe
