#pragma once

#include <cstdint>

#include "base/portable.hpp"
#include "machine/sm100/tile.hpp"

// Blackwell's own instructions, one function each, in the forms that a pair of CTAs uses. Those of
// one thread are called inside `if (elected())`, and such a region holds nothing but them and
// register code.
namespace megamoe::sm100::tcgen05 {

// True in one lane of a whole warp.
MEGAMOE_DEVICE bool elected() {
  std::uint32_t is_elected;
  asm volatile(
      "{.reg .pred p; .reg .b32 lane; elect.sync lane|p, 0xffffffff; selp.u32 %0, 1, 0, p;}"
      : "=r"(is_elected));
  return is_elected != 0;
}

// ---- tensor memory, by one whole warp of both CTAs

// Writes the address of the columns to shared memory; waits while others of the SM hold too many.
template <int kColumns>
MEGAMOE_DEVICE void allocate(std::uint32_t shared_address) {
  asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], %1;"
               :
               : "r"(shared_address), "n"(kColumns)
               : "memory");
  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;" : : : "memory");
}

template <int kColumns>
MEGAMOE_DEVICE void deallocate(std::uint32_t tmem) {
  asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, %1;"
               :
               : "r"(tmem), "n"(kColumns)
               : "memory");
}

// ---- order

// This thread's loads and stores of tensor memory are done before what other threads do once it has
// told them.
MEGAMOE_DEVICE void fence_before_telling() {
  asm volatile("tcgen05.fence::before_thread_sync;" : : : "memory");
}
// What other threads told of comes before this thread's tcgen05 instructions that follow.
MEGAMOE_DEVICE void fence_after_being_told() {
  asm volatile("tcgen05.fence::after_thread_sync;" : : : "memory");
}

// ---- by one thread of the leading CTA

// Runs of 16 bytes of scales, from each CTA's own shared memory into its own four columns; copies
// and products of one thread take place in the order of their issue.
MEGAMOE_DEVICE void copy_scales(std::uint32_t tmem, std::uint64_t from) {
  asm volatile("tcgen05.cp.cta_group::2.32x128b.warpx4 [%0], %1;"
               :
               : "r"(tmem), "l"(from)
               : "memory");
}

// Where the scales of both operands lie in tensor memory.
struct ScaleColumns {
  std::uint32_t weights, tokens;
};

// sums (+)= weights x tokens over 32 of K.
MEGAMOE_DEVICE void multiply(std::uint32_t sums,
                             std::uint64_t weights,
                             std::uint64_t tokens,
                             std::uint32_t instruction,
                             const ScaleColumns& scales,
                             bool adds) {
  asm volatile(
      "{.reg .pred adds; setp.ne.b32 adds, %4, 0;"
      " tcgen05.mma.cta_group::2.kind::mxf8f6f4.block_scale [%0], %1, %2, %3, [%5], [%6], adds;}"
      :
      : "r"(sums),
        "l"(weights),
        "l"(tokens),
        "r"(instruction),
        "r"(static_cast<std::uint32_t>(adds)),
        "r"(scales.weights),
        "r"(scales.tokens)
      : "memory");
}

// An arrival at the barrier of this place in both CTAs, once everything that this thread issued
// before is done.
MEGAMOE_DEVICE void commit_to_pair(std::uint32_t barrier) {
  constexpr std::uint16_t kBothCtas = 0b11;
  asm volatile(
      "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64"
      " [%0], %1;"
      :
      : "r"(barrier), "h"(kBothCtas)
      : "memory");
}

// ---- by a whole warp

// 16 lanes x 8 columns of this warp's quarter: thread t gets lane t / 4 of columns 2 (t % 4) and
// one further in values 0 and 1, and lane t / 4 + 8 in 2 and 3. Not before wait_for_loads().
MEGAMOE_DEVICE void load(std::uint32_t tmem, float (&values)[4]) {
  asm volatile("tcgen05.ld.sync.aligned.16x256b.x1.b32 {%0, %1, %2, %3}, [%4];"
               : "=f"(values[0]), "=f"(values[1]), "=f"(values[2]), "=f"(values[3])
               : "r"(tmem)
               : "memory");
}
MEGAMOE_DEVICE void wait_for_loads() {
  asm volatile("tcgen05.wait::ld.sync.aligned;" : : : "memory");
}

// Eight rows of 16 bytes, whose addresses lanes 0 to 7 give: byte j of thread t goes to row
// 2 (t % 4) + j % 2, place t / 4 + 8 (j / 2).
MEGAMOE_DEVICE void store_bytes_transposed(std::uint32_t row_address, std::uint32_t bytes) {
  asm volatile("stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [%0], {%1};"
               :
               : "r"(row_address), "r"(bytes)
               : "memory");
}

}  // namespace megamoe::sm100::tcgen05
