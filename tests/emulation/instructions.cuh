#pragma once

#include <cstdint>

#include "base/portable.hpp"

// The Blackwell instructions of the tile kernel, one function each.
namespace megamoe::test {

// True in one thread of the warp, the same one every time.
MEGAMOE_DEVICE bool elect_one() {
  std::uint32_t is_elected;
  asm volatile(
      "{.reg .pred p; .reg .b32 lane; mov.b32 %0, 0; elect.sync lane|p, 0xffffffff; "
      "@p mov.b32 %0, 1;}"
      : "=r"(is_elected));
  return is_elected != 0;
}

// ---- the pair

MEGAMOE_DEVICE std::uint32_t pair_rank() {
  std::uint32_t v;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(v));
  return v;
}
// The same place in the leader's shared memory: a CTA's number stands above an address's 24 bits.
MEGAMOE_DEVICE std::uint32_t in_leader(std::uint32_t shared_address) {
  return shared_address & 0xFEFF'FFFFU;
}
MEGAMOE_DEVICE void pair_barrier() {
  asm volatile("barrier.cluster.arrive.release.aligned;" : : : "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" : : : "memory");
}
MEGAMOE_DEVICE void arrive_at_leader(std::uint32_t barrier) {
  asm volatile(
      "{.reg .b32 there; mapa.shared::cluster.u32 there, %0, 0; "
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there];}"
      :
      : "r"(barrier)
      : "memory");
}

// Completes on a barrier of either CTA.
MEGAMOE_DEVICE void copy_box(
    std::uint32_t to, const void* tensor_map, int x, int y, std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %4}], [%2];"
      :
      : "r"(to), "l"(tensor_map), "r"(barrier), "r"(x), "r"(y)
      : "memory");
}

// ---- tensor memory

MEGAMOE_DEVICE void allocate_columns(std::uint32_t address_goes_to, std::uint32_t columns) {
  asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], %1;"
               :
               : "r"(address_goes_to), "r"(columns)
               : "memory");
  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;");
}
MEGAMOE_DEVICE void deallocate_columns(std::uint32_t address, std::uint32_t columns) {
  asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, %1;"
               :
               : "r"(address), "r"(columns));
}
MEGAMOE_DEVICE void fence_before_sync() {
  asm volatile("tcgen05.fence::before_thread_sync;" : : : "memory");
}
MEGAMOE_DEVICE void fence_after_sync() {
  asm volatile("tcgen05.fence::after_thread_sync;" : : : "memory");
}

// 16 lanes, 16 columns: register i is row t / 4 + 8 * (i / 2 % 2), column i / 4 * 8 + t % 4 * 2 + i
// % 2.
MEGAMOE_DEVICE void load_16x256b_x2(std::uint32_t address, std::uint32_t (&v)[8]) {
  asm volatile("tcgen05.ld.sync.aligned.16x256b.x2.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
               : "=r"(v[0]),
                 "=r"(v[1]),
                 "=r"(v[2]),
                 "=r"(v[3]),
                 "=r"(v[4]),
                 "=r"(v[5]),
                 "=r"(v[6]),
                 "=r"(v[7])
               : "r"(address)
               : "memory");
}
// 32 lanes, 8 columns: register i of thread t is row t, column i.
MEGAMOE_DEVICE void load_32x32b_x8(std::uint32_t address, std::uint32_t (&v)[8]) {
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8];"
               : "=r"(v[0]),
                 "=r"(v[1]),
                 "=r"(v[2]),
                 "=r"(v[3]),
                 "=r"(v[4]),
                 "=r"(v[5]),
                 "=r"(v[6]),
                 "=r"(v[7])
               : "r"(address)
               : "memory");
}
// Registers of a load may be read behind this alone; they pass through it, so that nothing that
// reads them moves in front of it.
MEGAMOE_DEVICE void wait_for_load(std::uint32_t (&v)[8]) {
  asm volatile("tcgen05.wait::ld.sync.aligned;"
               : "+r"(v[0]),
                 "+r"(v[1]),
                 "+r"(v[2]),
                 "+r"(v[3]),
                 "+r"(v[4]),
                 "+r"(v[5]),
                 "+r"(v[6]),
                 "+r"(v[7])
               :
               : "memory");
}

// ---- operations of the pair, by one thread of the leader

MEGAMOE_DEVICE void copy_scales(std::uint32_t to, std::uint64_t from) {
  asm volatile("tcgen05.cp.cta_group::2.32x128b.warpx4 [%0], %1;"
               :
               : "r"(to), "l"(from)
               : "memory");
}

struct Product {
  std::uint32_t sums, weight_scales, token_scales;  // tensor memory
};

MEGAMOE_DEVICE void multiply(const Product& at,
                             std::uint64_t weights,
                             std::uint64_t tokens,
                             std::uint32_t instruction,
                             bool accumulates) {
  asm volatile(
      "{.reg .pred p; setp.ne.b32 p, %6, 0; "
      "tcgen05.mma.cta_group::2.kind::mxf8f6f4.block_scale [%0], %1, %2, %3, [%4], [%5], p;}"
      :
      : "r"(at.sums),
        "l"(weights),
        "l"(tokens),
        "r"(instruction),
        "r"(at.weight_scales),
        "r"(at.token_scales),
        "r"(static_cast<std::uint32_t>(accumulates))
      : "memory");
}

// One arrival at the same place of both CTAs, once all before it is done.
MEGAMOE_DEVICE void commit_to_pair(std::uint32_t barrier) {
  asm volatile(
      "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 "
      "[%0], %1;"
      :
      : "r"(barrier), "h"(static_cast<std::uint16_t>(3))
      : "memory");
}

}  // namespace megamoe::test
