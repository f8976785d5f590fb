#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "device_memory.hpp"
#include "emulation/host/emulator.hpp"
#include "machine/cuda/launch.hpp"
#include "parallel.hpp"
#include "tile_args.hpp"
#include "tile_case.hpp"

namespace megamoe::emulation {

Cubin multiply_tiles_16_cubin();
Cubin multiply_tiles_32_cubin();
Cubin multiply_tiles_64_cubin();
Cubin multiply_tiles_96_cubin();
Cubin multiply_tiles_128_cubin();
Cubin multiply_tiles_192_cubin();

}  // namespace megamoe::emulation

// The Blackwell main loop on a Hopper card, every tile size and mode, against fp64.
namespace megamoe::test {
namespace {

struct Instance {
  emulation::Cubin cubin;
  sm100::Plan plan;
  std::size_t storage_bytes;
};

template <int kBlockM>
Instance instance(emulation::Cubin cubin) {
  constexpr sm100::Plan kPlan = sm100::Choice<kBlockM>::kPlan;
  return {cubin, kPlan, sizeof(sm100::SharedStorage<kPlan>)};
}

Instance instance_of(int block_m) {
  switch (block_m) {
    case 16: return instance<16>(emulation::multiply_tiles_16_cubin());
    case 32: return instance<32>(emulation::multiply_tiles_32_cubin());
    case 64: return instance<64>(emulation::multiply_tiles_64_cubin());
    case 96: return instance<96>(emulation::multiply_tiles_96_cubin());
    case 128: return instance<128>(emulation::multiply_tiles_128_cubin());
    default: return instance<192>(emulation::multiply_tiles_192_cubin());
  }
}

struct NamedModes {
  const char* name;
  emulation::Modes modes;
};
std::ostream& operator<<(std::ostream& out, const NamedModes& modes) {
  return out << modes.name;
}

// Sums of all tiles, [tiles][256][block_m]; poison where the kernel wrote nothing.
std::vector<float> run(const TileCase& data, const emulation::EmulatorOptions& options) {
  emulation::Emulator emulator(options);
  const Instance kernel = instance_of(data.shape.block_m);
  const void* function = emulator.load(kernel.cubin);
  const DeviceBytes codes = upload(data.codes);
  const DeviceBytes weight_scales = upload(data.weight_scales);
  const DeviceBytes tokens = upload(data.tokens);
  const DeviceBytes token_scales = upload(data.token_scales);
  const auto count =
      static_cast<std::size_t>(data.shape.tiles * sm100::kPairRows * data.shape.block_m);
  DeviceBytes sums(count * sizeof(float));
  sums.fill(0xFF);
  const CUtensorMap map =
      emulator.encode({.type = CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B,
                       .address = codes.as(),
                       .extents = {static_cast<cuuint64_t>(data.layout.padded_depth()),
                                   static_cast<cuuint64_t>(data.layout.padded_rows())},
                       .strides = {static_cast<cuuint64_t>(data.layout.row_bytes())},
                       .box = {sm100::kStepDepth, sm100::kBlockRows, 1},
                       .swizzle = CU_TENSOR_MAP_SWIZZLE_128B});
  TileArgs args{.codes = {},
                .weight_scales = weight_scales.as(),
                .tokens = tokens.as(),
                .token_scales = token_scales.as(),
                .sums = sums.as<float>(),
                .tiles = data.shape.tiles,
                .steps = data.shape.steps(),
                .last_rows = data.shape.last_rows};
  static_assert(sizeof args.codes == sizeof map);
  std::memcpy(&args.codes, &map, sizeof map);
  emulator.prepare();
  gpu::launch(function,
              {.workers = 2,
               .threads = kernel.plan.threads(),
               .shared_bytes = static_cast<int>(kernel.storage_bytes),
               .cluster = 2},
              gpu::CoResidence::kByCaller,
              nullptr,
              &args);
  emulator.check(cudaDeviceSynchronize());
  return download<float>(sums.as(), count);
}

struct Difference {
  double worst = 0;  // as a part of what was added up
  std::int64_t wrong = 0;
};

Difference compare(const TileCase& data, const std::vector<float>& sums) {
  const TileShape& shape = data.shape;
  std::vector<Difference> of_row(static_cast<std::size_t>(shape.tiles * sm100::kPairRows));
  parallel_for(static_cast<int>(of_row.size()), [&](int i) {
    const int tile = i / sm100::kPairRows;
    Difference& difference = of_row[static_cast<std::size_t>(i)];
    for (int token = 0; token < shape.rows_of(tile); ++token) {
      const ExpectedSum expected = data.expected(tile, i % sm100::kPairRows, token);
      const double sum = sums[static_cast<std::size_t>(i * shape.block_m + token)];
      const double off = std::abs(sum - expected.value) / expected.magnitude;
      difference.wrong += off < 1e-6 ? 0 : 1;  // NaN is wrong
      difference.worst = std::max(difference.worst, std::isnan(off) ? 1e30 : off);
    }
  });
  Difference all;
  for (const Difference& row : of_row)
    all = {std::max(all.worst, row.worst), all.wrong + row.wrong};
  return all;
}

class EmulatedTile : public testing::TestWithParam<std::tuple<int, NamedModes>> {
 protected:
  void SetUp() override {
    cudaDeviceProp properties{};
    if (cudaGetDeviceProperties(&properties, 0) != cudaSuccess)
      GTEST_SKIP() << "there is no GPU here";
    if (properties.major != 9)
      GTEST_SKIP() << "the emulation is built for Hopper, and this is compute capability "
                   << properties.major << "." << properties.minor;
  }
};

// Five tiles take both accumulators round twice; K has a step that is not whole; more steps than
// stages.
TEST_P(EmulatedTile, AgreesWithFloat64) {
  const auto& [block_m, modes] = GetParam();
  for (const int rows : {1, block_m / 2 + 3, block_m}) {
    const TileCase data({.block_m = block_m, .depth = 608, .tiles = 5, .last_rows = rows}, 11);
    const std::vector<float> sums = run(data, {.ctas = 2, .modes = modes.modes});
    const Difference difference = compare(data, sums);
    std::printf("  block_m %3d, last rows %3d, %-19s worst %.2e of the sum of magnitudes\n",
                block_m,
                rows,
                modes.name,
                difference.worst);
    EXPECT_EQ(difference.wrong, 0) << "rows " << rows << ", worst " << difference.worst;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All,
    EmulatedTile,
    testing::Combine(testing::Values(16, 32, 64, 96, 128, 192),
                     testing::Values(NamedModes{"plain", {}},
                                     NamedModes{"deferred", {.is_deferred = true}},
                                     NamedModes{"jitter", {.has_jitter = true}},
                                     NamedModes{"deferred and jitter", {true, true}})),
    [](const auto& made) {
      const emulation::Modes& modes = std::get<1>(made.param).modes;
      return "BlockM" + std::to_string(std::get<0>(made.param)) +
             (modes.is_deferred ? "Deferred" : "") + (modes.has_jitter ? "Jitter" : "");
    });

// The last test of the file: a trap takes the process's device with it.
class EmulatedTrap : public EmulatedTile {};

TEST_P(EmulatedTrap, SaysWhy) {
  const TileCase data({.block_m = 16, .depth = 128, .tiles = 1, .last_rows = 16}, 1);
  try {
    run(data, {.ctas = 1});
    FAIL() << "a grid of two CTAs ran in tensor memory for one";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("warp 0, lane 0: the grid has 2 CTAs, the emulation was made for 1"),
              std::string::npos)
        << text;
  }
}
INSTANTIATE_TEST_SUITE_P(One,
                         EmulatedTrap,
                         testing::Values(std::tuple{16, NamedModes{"plain", {}}}));

}  // namespace
}  // namespace megamoe::test
