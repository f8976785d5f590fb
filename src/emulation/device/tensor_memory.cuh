#pragma once

#include <cstddef>
#include <cstdint>

#include "emulation/device/state.cuh"

// Tensor memory is global memory here. Its accesses go to L2: the two CTAs of a pair see each
// other's, and a stale line of L1 is nobody's.
namespace megamoe::emulation {

MEGAMOE_DEVICE std::uint32_t* tensor_memory_of(std::uint32_t rank) {
  const int ctas_away = static_cast<int>(rank) - static_cast<int>(cluster_rank());
  const auto index = static_cast<std::size_t>(static_cast<int>(blockIdx.x) + ctas_away);
  return emulated_settings.tensor_memory + index * kTensorLanes * kTensorColumns;
}

MEGAMOE_DEVICE std::uint32_t load_word(const std::uint32_t* from) {
  std::uint32_t v;
  asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(v) : "l"(from) : "memory");
  return v;
}
MEGAMOE_DEVICE void store_word(std::uint32_t* to, std::uint32_t v) {
  asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" : : "l"(to), "r"(v) : "memory");
}
MEGAMOE_DEVICE float2 load_sums(const std::uint32_t* from) {
  float2 v;
  asm volatile("ld.relaxed.gpu.global.v2.f32 {%0, %1}, [%2];"
               : "=f"(v.x), "=f"(v.y)
               : "l"(from)
               : "memory");
  return v;
}
MEGAMOE_DEVICE void store_sums(std::uint32_t* to, float x, float y) {
  asm volatile("st.relaxed.gpu.global.v2.f32 [%0], {%1, %2};"
               :
               : "l"(to), "f"(x), "f"(y)
               : "memory");
}

// ---- allocation: NaN as a sum, and no scale that anybody would choose
inline constexpr std::uint32_t kPoison = 0x7FC0DEAD;

extern "C" __device__ __noinline__ void emulated_allocate(std::uint32_t to, std::uint32_t columns) {
  expect(__activemask() == ~0U, "tcgen05.alloc by a part of a warp");
  expect(columns >= 32 && columns <= kTensorColumns && (columns & (columns - 1)) == 0,
         "tcgen05.alloc of # columns; it takes a power of two from 32 to 512",
         columns);
  const std::uint32_t first = cta.columns;
  expect(first + columns <= kTensorColumns,
         "tcgen05.alloc of # columns would block: # of 512 are allocated",
         columns,
         first);
  __syncwarp();
  std::uint32_t* memory = tensor_memory_of(cluster_rank());
  for (std::uint32_t row = 0; row < kTensorLanes; ++row)
    for (std::uint32_t c = lane(); c < columns; c += kLanesOfWarp)
      store_word(memory + row * kTensorColumns + first + c, kPoison);
  if (lane() == 0) {
    cta.columns = first + columns;
    ptx::store_shared_u32(to, first);
  }
  fence_device();
  __syncwarp();
}

extern "C" __device__ __noinline__ void emulated_deallocate(std::uint32_t address,
                                                            std::uint32_t columns) {
  expect(cta.queued == 0, "tcgen05.dealloc with # operations never committed", cta.queued);
  expect(tensor_lane(address) == 0 && tensor_column(address) + columns == cta.columns,
         "tcgen05.dealloc of # columns at #x; # are allocated",
         columns,
         address,
         cta.columns);
  __syncwarp();
  if (lane() == 0) cta.columns -= columns;
  __syncwarp();
}

// ---- loads: where a thread's registers lie; the rewriter emits the loads themselves

MEGAMOE_DEVICE std::uint32_t* loaded_from(std::uint32_t address,
                                          std::uint32_t lanes,
                                          std::uint32_t columns) {
  const std::uint32_t quarter = warp() % 4;
  const std::uint32_t named = tensor_lane(address);
  expect(__activemask() == ~0U, "tcgen05.ld by a part of a warp");
  expect(named % lanes == 0 && (named / 32 == 0 || named / 32 == quarter),
         "tcgen05.ld from lane # by a warp whose lanes begin at #",
         named,
         quarter * 32);
  expect(tensor_column(address) + columns <= cta.columns,
         "tcgen05.ld of # columns at column #; # are allocated",
         columns,
         tensor_column(address),
         cta.columns);
  jitter(48);
  __syncwarp();
  const std::uint32_t row = quarter * 32 + named % 32;
  return tensor_memory_of(cluster_rank()) + row * kTensorColumns + tensor_column(address);
}

extern "C" __device__ __noinline__ std::uint32_t* emulated_load_16x256b(std::uint32_t address,
                                                                        std::uint32_t registers) {
  return loaded_from(address, 16, registers / 4 * 8) +
         Hardware::loaded_lane(lane(), 0) * kTensorColumns + Hardware::loaded_column(lane(), 0);
}

extern "C" __device__ __noinline__ std::uint32_t* emulated_load_32x32b(std::uint32_t address,
                                                                       std::uint32_t registers) {
  return loaded_from(address, 32, registers) + lane() * kTensorColumns;
}

}  // namespace megamoe::emulation
