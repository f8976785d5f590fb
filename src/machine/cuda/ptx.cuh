#pragma once

#include <cstdint>

#include "base/portable.hpp"

// One function, one instruction. Shared memory is addressed by plain 32-bit integers here: a
// generic pointer into it is rebuilt through a special register at every use, which costs a
// memory-bound loop more than its arithmetic.
namespace megamoe::ptx {

MEGAMOE_DEVICE std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

// Plain accesses, which the compiler may move between barriers and whose constant offsets it folds.
template <class T>
MEGAMOE_DEVICE T* shared_pointer(std::uint32_t address) {
  return static_cast<T*>(__cvta_shared_to_generic(address));
}

// Keeps a value in a register: the compiler can't know how to compute it again.
MEGAMOE_DEVICE std::uint32_t opaque(std::uint32_t value) {
  asm volatile("mov.u32 %0, %0;" : "+r"(value));
  return value;
}

// What wgmma left in a register may be read only after its wait: nothing moves across this.
MEGAMOE_DEVICE void pin(float& value) {
  asm volatile("" : "+f"(value) : : "memory");
}

// ---- mbarrier

MEGAMOE_DEVICE void mbarrier_init(std::uint32_t barrier, std::uint32_t arrivals) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" : : "r"(barrier), "r"(arrivals) : "memory");
}

// Makes initialised barriers visible to the copy engine.
MEGAMOE_DEVICE void fence_mbarrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");
}

MEGAMOE_DEVICE void mbarrier_arrive(std::uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared.b64 _, [%0];" : : "r"(barrier) : "memory");
}

// Predicated inside: a branch in a main loop costs registers.
MEGAMOE_DEVICE void mbarrier_arrive_if(bool arrives, std::uint32_t barrier) {
  asm volatile("{.reg .pred p; setp.ne.u32 p, %1, 0; @p mbarrier.arrive.shared.b64 _, [%0];}"
               :
               : "r"(barrier), "r"(static_cast<std::uint32_t>(arrives))
               : "memory");
}

// Arrives, and makes the phase wait for `bytes` that copies still owe.
MEGAMOE_DEVICE void mbarrier_arrive_expect(std::uint32_t barrier, std::uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;"
               :
               : "r"(barrier), "r"(bytes)
               : "memory");
}

// Whether the phase with this parity is over; may sleep a little before it says no.
MEGAMOE_DEVICE bool mbarrier_try_wait(std::uint32_t barrier, std::uint32_t parity) {
  std::uint32_t is_over;
  asm volatile(
      "{.reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
      : "=r"(is_over)
      : "r"(barrier), "r"(parity)
      : "memory");
  return is_over != 0;
}

// ---- clusters

// The same for arrivals of other CTAs: what they did before is visible.
MEGAMOE_DEVICE bool mbarrier_try_wait_of_cluster(std::uint32_t barrier, std::uint32_t parity) {
  std::uint32_t is_over;
  asm volatile(
      "{.reg .pred p; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;"
      " selp.u32 %0, 1, 0, p;}"
      : "=r"(is_over)
      : "r"(barrier), "r"(parity)
      : "memory");
  return is_over != 0;
}

MEGAMOE_DEVICE std::uint32_t cluster_rank() {
  std::uint32_t rank;
  asm("mov.u32 %0, %cluster_ctarank;" : "=r"(rank));
  return rank;
}

// The same place in the shared memory of another CTA of the cluster.
template <class T>
MEGAMOE_DEVICE T* of_cluster_rank(T* pointer, std::uint32_t rank) {
  std::uint64_t there;
  asm("mapa.u64 %0, %1, %2;"
      : "=l"(there)
      : "l"(reinterpret_cast<std::uint64_t>(pointer)), "r"(rank));
  return reinterpret_cast<T*>(there);
}

// All threads of the cluster are here, and see each other's writes.
MEGAMOE_DEVICE void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned;" : : : "memory");
  asm volatile("barrier.cluster.wait.acquire.aligned;" : : : "memory");
}

// An arrival at the barrier of this place in another CTA; what this thread did before is visible to
// who waits there.
MEGAMOE_DEVICE void mbarrier_arrive_at(std::uint32_t barrier, std::uint32_t rank) {
  asm volatile(
      "{.reg .b32 there; mapa.shared::cluster.u32 there, %0, %1;"
      " mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there];}"
      :
      : "r"(barrier), "r"(rank)
      : "memory");
}

// ---- copy engine

// Global to shared; 16-byte aligned, a multiple of 16 bytes. Completes on the barrier.
MEGAMOE_DEVICE void bulk_copy(std::uint32_t shared,
                              const void* global,
                              std::uint32_t bytes,
                              std::uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
      :
      : "r"(shared), "l"(global), "r"(bytes), "r"(barrier)
      : "memory");
}

// A column and a row of a matrix.
struct TensorPlace {
  int column, row;
};

// A tile of a matrix that a tensor map describes; the box is the map's.
MEGAMOE_DEVICE void tensor_copy(std::uint32_t shared,
                                const void* map,
                                const TensorPlace& place,
                                std::uint32_t barrier) {
  constexpr std::uint64_t kEvictNormal = 0x1000000000000000;
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint"
      " [%0], [%1, {%3, %4}], [%2], %5;"
      :
      : "r"(shared), "l"(map), "r"(barrier), "r"(place.column), "r"(place.row), "l"(kEvictNormal)
      : "memory");
}

MEGAMOE_DEVICE void prefetch_tensor_map(const void* map) {
  asm volatile("prefetch.tensormap [%0];" : : "l"(map) : "memory");
}

// Between plain accesses and those of the copy engine or wgmma, in either direction.
MEGAMOE_DEVICE void fence_proxy_async() {
  asm volatile("fence.proxy.async;" : : : "memory");
}

// ---- threads

MEGAMOE_DEVICE void barrier_sync(int id, int threads) {
  asm volatile("barrier.sync %0, %1;" : : "r"(id), "r"(threads) : "memory");
}

// By all warps of a warpgroup. Gives registers back, or takes what others gave.
template <int kRegisters>
MEGAMOE_DEVICE void registers_down_to() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" : : "n"(kRegisters));
}
template <int kRegisters>
MEGAMOE_DEVICE void registers_up_to() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" : : "n"(kRegisters));
}

// Nanoseconds of one clock that the device's workers share.
MEGAMOE_DEVICE std::uint64_t global_nanoseconds() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

MEGAMOE_DEVICE void sleep_nanoseconds(std::uint32_t time) {
  asm volatile("nanosleep.u32 %0;" : : "r"(time));
}

// ---- shared memory

MEGAMOE_DEVICE uint4 load_shared_u32x4(std::uint32_t address) {
  uint4 v;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(address)
               : "memory");
  return v;
}

MEGAMOE_DEVICE std::uint32_t load_shared_u32(std::uint32_t address) {
  std::uint32_t v;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(address) : "memory");
  return v;
}

MEGAMOE_DEVICE std::uint32_t load_shared_u16(std::uint32_t address) {
  std::uint16_t v;
  asm volatile("ld.shared.u16 %0, [%1];" : "=h"(v) : "r"(address) : "memory");
  return v;
}

MEGAMOE_DEVICE std::uint32_t load_shared_u8(std::uint32_t address) {
  std::uint32_t v;
  asm volatile("ld.shared.u8 %0, [%1];" : "=r"(v) : "r"(address) : "memory");
  return v;
}

MEGAMOE_DEVICE float4 load_shared_f32x4(std::uint32_t address) {
  float4 v;
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
               : "r"(address)
               : "memory");
  return v;
}

MEGAMOE_DEVICE void store_shared_u8(std::uint32_t address, std::uint32_t value) {
  asm volatile("st.shared.u8 [%0], %1;" : : "r"(address), "r"(value) : "memory");
}

MEGAMOE_DEVICE void store_shared_u32(std::uint32_t address, std::uint32_t value) {
  asm volatile("st.shared.u32 [%0], %1;" : : "r"(address), "r"(value) : "memory");
}

MEGAMOE_DEVICE void store_shared_f32(std::uint32_t address, float value) {
  asm volatile("st.shared.f32 [%0], %1;" : : "r"(address), "f"(value) : "memory");
}

// Returns the old value; orders what the CTA's threads did before theirs.
MEGAMOE_DEVICE std::uint32_t add_shared_u32(std::uint32_t address, std::uint32_t n) {
  std::uint32_t old;
  asm volatile("atom.acq_rel.cta.shared.add.u32 %0, [%1], %2;"
               : "=r"(old)
               : "r"(address), "r"(n)
               : "memory");
  return old;
}

MEGAMOE_DEVICE void store_shared_u32x4(std::uint32_t address, const uint4& v) {
  asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};"
               :
               : "r"(address), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
               : "memory");
}

// Four 8x8 matrices of 16-bit values, each stored transposed; lanes 8i .. 8i + 7 give the rows of
// matrix i.
MEGAMOE_DEVICE void store_matrices_transposed(std::uint32_t row_address,
                                              std::uint32_t m0,
                                              std::uint32_t m1,
                                              std::uint32_t m2,
                                              std::uint32_t m3) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};"
               :
               : "r"(row_address), "r"(m0), "r"(m1), "r"(m2), "r"(m3)
               : "memory");
}

// Two of them.
MEGAMOE_DEVICE void store_matrices_transposed(std::uint32_t row_address,
                                              std::uint32_t m0,
                                              std::uint32_t m1) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};"
               :
               : "r"(row_address), "r"(m0), "r"(m1)
               : "memory");
}

// ---- arithmetic

// Byte i of the result is byte (selector nibble i) of {low, high}. __byte_perm would mask the
// selector again.
MEGAMOE_DEVICE std::uint32_t permute(std::uint32_t low,
                                     std::uint32_t high,
                                     std::uint32_t selector) {
  std::uint32_t v;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(v) : "r"(low), "r"(high), "r"(selector));
  return v;
}

// An AND that the compiler doesn't split into two smaller masks.
MEGAMOE_DEVICE std::uint32_t whole_and(std::uint32_t a, std::uint32_t b) {
  std::uint32_t v;
  asm("and.b32 %0, %1, %2;" : "=r"(v) : "r"(a), "r"(b));
  return v;
}

MEGAMOE_DEVICE std::uint32_t multiply_bfloat16x2(std::uint32_t a, std::uint32_t b) {
  std::uint32_t v;
  asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(v) : "r"(a), "r"(b));
  return v;
}

MEGAMOE_DEVICE std::uint32_t multiply_float16x2(std::uint32_t a, std::uint32_t b) {
  std::uint32_t v;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(v) : "r"(a), "r"(b));
  return v;
}

// `low` in the low half; nearest even, NaN 0x7FFF.
MEGAMOE_DEVICE std::uint32_t to_bfloat16x2(float low, float high) {
  std::uint32_t v;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(v) : "f"(high), "f"(low));
  return v;
}

// `low` in the low byte; nearest even, saturating, NaN 0x7F.
MEGAMOE_DEVICE std::uint32_t to_float8x2(float low, float high) {
  std::uint16_t v;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(v) : "f"(high), "f"(low));
  return v;
}

MEGAMOE_DEVICE std::uint32_t float16x2_to_float8x2(std::uint32_t halves) {
  std::uint16_t v;
  asm("cvt.rn.satfinite.e4m3x2.f16x2 %0, %1;" : "=h"(v) : "r"(halves));
  return v;
}

// Exact.
MEGAMOE_DEVICE std::uint32_t float8x2_to_float16x2(std::uint32_t codes) {
  std::uint32_t v;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(v) : "h"(static_cast<std::uint16_t>(codes)));
  return v;
}

// NaN if either is: at_most() and at_least() of numerics/swiglu.hpp in one instruction.
MEGAMOE_DEVICE float min_or_nan(float a, float b) {
  float v;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(v) : "f"(a), "f"(b));
  return v;
}
MEGAMOE_DEVICE float max_or_nan(float a, float b) {
  float v;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(v) : "f"(a), "f"(b));
  return v;
}

// The larger magnitude; NaN if either is.
MEGAMOE_DEVICE float largest_or_nan(float a, float b) {
  return max_or_nan(fabsf(a), fabsf(b));
}

// 2^x and 1 / x to about two units in the last place, subnormal numbers as zeros.
MEGAMOE_DEVICE float approximate_power_of_two(float x) {
  float v;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(v) : "f"(x));
  return v;
}

MEGAMOE_DEVICE float approximate_reciprocal(float x) {
  float v;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(v) : "f"(x));
  return v;
}

}  // namespace megamoe::ptx
