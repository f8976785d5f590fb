#pragma once

#include <cstdint>

#include "base/portable.hpp"

// Forms of Blackwell's instructions that the machine doesn't use (yet) and the emulation has.
namespace megamoe::test {

// The same place in the leader's shared memory: a CTA's number stands above an address's 24 bits.
MEGAMOE_DEVICE std::uint32_t in_leader(std::uint32_t shared_address) {
  return shared_address & 0xFEFF'FFFFU;
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
}  // namespace megamoe::test
