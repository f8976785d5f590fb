#include "machine/sm100/emulated/kernels.hpp"

#include <algorithm>
#include <array>

#include "machine/cuda/block_sizes.hpp"

namespace megamoe::emulation {

Cubin sm100_emulated_16_cubin();
Cubin sm100_emulated_32_cubin();
Cubin sm100_emulated_64_cubin();
Cubin sm100_emulated_96_cubin();
Cubin sm100_emulated_128_cubin();
Cubin sm100_emulated_192_cubin();

}  // namespace megamoe::emulation

namespace megamoe::sm100 {
namespace {

/// In the order of kBlockSizes.
constexpr std::array<emulation::Cubin (*)(), kBlockSizes.size()> kCubins = {
    emulation::sm100_emulated_16_cubin,
    emulation::sm100_emulated_32_cubin,
    emulation::sm100_emulated_64_cubin,
    emulation::sm100_emulated_96_cubin,
    emulation::sm100_emulated_128_cubin,
    emulation::sm100_emulated_192_cubin};

/// Without data where it is left out of this build.
template <int kBlockM>
emulation::Cubin cubin_of() {
  constexpr auto kPlace = std::find(kBlockSizes.begin(), kBlockSizes.end(), kBlockM);
  return kCubins[kPlace - kBlockSizes.begin()]();
}

template <int kBlockM>
KernelInstance loaded(emulation::Emulator& emulator) {
  static_assert(emulation::kSharedMemoryTaken <= kSharedMemorySpare);
  constexpr Plan kPlan = Choice<kBlockM>::kPlan;
  const emulation::Cubin cubin = cubin_of<kBlockM>();
  if (cubin.data == nullptr) return {};
  return {emulator.load(cubin), kPlan, static_cast<int>(sizeof(SharedStorage<kPlan>))};
}

}  // namespace

KernelInstance emulated_instance_of(emulation::Emulator& emulator, int block_m) {
  return gpu::of_block_size<kBlockSizes>(
      "sm100", block_m, [&](auto size) { return loaded<size>(emulator); });
}

bool has_emulated_instance(int block_m) {
  return gpu::of_block_size<kBlockSizes>(
      "sm100", block_m, [](auto size) { return cubin_of<size>().data != nullptr; });
}

}  // namespace megamoe::sm100
