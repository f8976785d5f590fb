#pragma once

#include <cstdint>

#include "emulation/device/tensor_memory.cuh"

// Tensor-map loads that Hopper lacks: those that complete on the leader's barrier, and those that
// unpack FP4; and the small things: byte transposes and bulk clears of shared memory.
namespace megamoe::emulation {

struct Box {
  const MapEntry* map;
  std::uint64_t descriptor;
  std::int32_t at[3];  // innermost first
};

MEGAMOE_DEVICE const MapEntry* find_map(std::uint64_t descriptor) {
  const auto* wanted = reinterpret_cast<const uint4*>(descriptor);
  for (std::uint32_t i = 0; i < emulated_settings.num_maps; ++i) {
    const auto* known = reinterpret_cast<const uint4*>(emulated_settings.maps[i].content);
    bool is_same = true;
    for (std::uint32_t j = 0; j < kMapBytes / 16 && is_same; ++j)
      is_same = wanted[j].x == known[j].x && wanted[j].y == known[j].y &&
                wanted[j].z == known[j].z && wanted[j].w == known[j].w;
    if (is_same) return &emulated_settings.maps[i];
  }
  return nullptr;
}

MEGAMOE_DEVICE void copy_box(std::uint32_t to, const Box& box, std::uint32_t barrier) {
  if (box.map->dimensions == 2)
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
        "[%1, {%3, %4}], [%2];"
        :
        : "r"(to), "l"(box.descriptor), "r"(barrier), "r"(box.at[0]), "r"(box.at[1])
        : "memory");
  else
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], "
        "[%1, {%3, %4, %5}], [%2];"
        :
        : "r"(to), "l"(box.descriptor), "r"(barrier), "r"(box.at[0]), "r"(box.at[1]), "r"(box.at[2])
        : "memory");
}

// The copy by a barrier of the library's own, whose bytes the caller passes on.
MEGAMOE_DEVICE void copy_box_and_wait(std::uint32_t to, const Box& box) {
  const std::uint32_t barrier = ptx::shared_address(&cta.copied[warp()]);
  ptx::mbarrier_arrive_expect(barrier, box.map->bytes);
  copy_box(to, box, barrier);
  while (!ptx::mbarrier_try_wait(barrier, cta.copied_parity[warp()]))
    expect(
        !is_late(), "timeout: emulated copy of a box at #, #, #", box.at[0], box.at[1], box.at[2]);
  cta.copied_parity[warp()] ^= 1;
}

inline constexpr std::uint32_t kPackedRow = 64;
inline constexpr std::uint64_t kPadding =
    0xEEEE'EEEE'EEEE'EEEE;  // a code that shows where it's read

// Packed rows lie in the upper half of the tile. Row r is read before anything is written at or
// behind it.
MEGAMOE_DEVICE void unpack_float4(std::uint32_t tile, const MapEntry& map) {
  for (std::uint32_t row = 0; row < map.rows; ++row) {
    std::uint64_t eights[8];
    MEGAMOE_UNROLL
    for (std::uint32_t i = 0; i < 4; ++i)
      asm volatile("ld.shared.v2.u64 {%0, %1}, [%2];"
                   : "=l"(eights[2 * i]), "=l"(eights[2 * i + 1])
                   : "r"(tile + (map.rows + row) * kPackedRow + i * 16)
                   : "memory");
    MEGAMOE_UNROLL
    for (std::uint32_t i = 0; i < 8; ++i) {
      const std::uint32_t plain = tile + row * 2 * kPackedRow + i * 16;
      const std::uint32_t place = map.is_swizzled != 0 ? Hardware::swizzled(plain) : plain;
      asm volatile("st.shared.v2.u64 [%0], {%1, %2};"
                   :
                   : "r"(place), "l"(eights[i]), "l"(kPadding)
                   : "memory");
    }
  }
  ptx::fence_proxy_async();
}

// `is_of_pair`: .cta_group::2, whose barrier may be the other CTA's.
extern "C" __device__ __noinline__ void emulated_copy_box(std::uint32_t is_of_pair,
                                                          std::uint32_t dimensions,
                                                          std::uint32_t to,
                                                          std::uint64_t descriptor,
                                                          std::int32_t x,
                                                          std::int32_t y,
                                                          std::int32_t z,
                                                          std::uint32_t barrier) {
  Box box{find_map(descriptor), descriptor, {x, y, z}};
  expect(box.map != nullptr, "the tensor map at #x was not encoded by the emulation", descriptor);
  const MapEntry& map = *box.map;
  expect(map.dimensions == dimensions,
         "a copy in # dimensions by a tensor map of #",
         dimensions,
         map.dimensions);
  const std::uint32_t own = ptx::shared_address(&cta) & 0xFF00'0000U;
  expect((to & 0xFF00'0000U) == own, "a tensor copy to #x, which is another CTA's", to);
  const bool is_local = (barrier & 0xFF00'0000U) == own;
  expect(
      is_local || is_of_pair != 0, "a tensor copy that is not the pair's, to barrier #x", barrier);
  if (is_local && map.is_float4 == 0) {
    copy_box(to, box, barrier);
    return;
  }
  expect(__popc(__activemask()) == 1, "a tensor copy issued by # lanes", __popc(__activemask()));
  if (map.is_float4 != 0) {
    expect(x % 128 == 0 && to % 1024 == 0,
           "an FP4 copy from column # to #x; multiples of 128 and of 1024 are emulated",
           static_cast<std::uint64_t>(x),
           to);
    box.at[0] /= 2;
    copy_box_and_wait(to + map.rows * kPackedRow, box);
    unpack_float4(to, map);
  } else {
    copy_box_and_wait(to, box);
  }
  jitter(32);
  fence_cluster();
  asm volatile("mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%0], %1;"
               :
               : "r"(barrier), "r"(map.bytes)
               : "memory");
}

// stmatrix .m16n8.x1.trans .b8: lanes 0 to 7 name the rows of 16 bytes.
extern "C" __device__ __noinline__ void emulated_store_bytes_transposed(std::uint32_t row,
                                                                        std::uint32_t four) {
  MEGAMOE_UNROLL
  for (std::uint32_t i = 0; i < 4; ++i) {
    const std::uint32_t to = __shfl_sync(~0U, row, 2 * (lane() % 4) + i % 2);
    ptx::store_shared_u8(to + lane() / 4 + i / 2 * 8, four >> 8 * i & 0xFF);
  }
  __syncwarp();
}

extern "C" __device__ __noinline__ void emulated_clear(std::uint64_t shared_address,
                                                       std::uint64_t bytes) {
  expect(
      bytes % 8 == 0 && shared_address % 8 == 0, "st.bulk of # bytes at #x", bytes, shared_address);
  for (std::uint64_t i = 0; i < bytes; i += 4)
    ptx::store_shared_u32(static_cast<std::uint32_t>(shared_address + i), 0);
}

}  // namespace megamoe::emulation
