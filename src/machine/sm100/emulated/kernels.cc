#include "machine/sm100/emulated/kernels.hpp"

#include "base/check.hpp"

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

template <int kBlockM>
KernelInstance loaded(emulation::Emulator& emulator, const emulation::Cubin& cubin) {
  constexpr Plan kPlan = Choice<kBlockM>::kPlan;
  static_assert(emulation::kSharedMemoryTaken <= kSharedMemorySpare);
  return {emulator.load(cubin), kPlan, static_cast<int>(sizeof(SharedStorage<kPlan>))};
}

}  // namespace

KernelInstance emulated_instance_of(emulation::Emulator& emulator, int block_m) {
  switch (block_m) {
    case 16: return loaded<16>(emulator, emulation::sm100_emulated_16_cubin());
    case 32: return loaded<32>(emulator, emulation::sm100_emulated_32_cubin());
    case 64: return loaded<64>(emulator, emulation::sm100_emulated_64_cubin());
    case 96: return loaded<96>(emulator, emulation::sm100_emulated_96_cubin());
    case 128: return loaded<128>(emulator, emulation::sm100_emulated_128_cubin());
    case 192: return loaded<192>(emulator, emulation::sm100_emulated_192_cubin());
    default: throw no_such_kernel(block_m);
  }
}

}  // namespace megamoe::sm100
