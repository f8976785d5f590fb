#pragma once

#include <cstdint>

#include "emulation/hardware.hpp"
#include "emulation/shared_with_device.hpp"
#include "machine/cuda/ptx.cuh"

// What the library keeps of a CTA, and how it stops a kernel that does what is not emulated.
extern "C" __device__ megamoe::emulation::Settings emulated_settings;

namespace megamoe::emulation {

inline constexpr int kWarps = 32;
inline constexpr std::uint32_t kNobody = ~0U;

struct CtaState {
  std::uint64_t copied[kWarps];  // one mbarrier a warp, for the copies that it issues
  std::uint32_t copied_parity[kWarps];
  std::uint64_t began_ns;
  std::uint32_t columns;       // of tensor memory, allocated
  std::uint32_t queued;        // deferred operations
  std::uint32_t issuing_warp;  // the one that issues tensor operations, once there was one
};
__shared__ CtaState cta;
__device__ std::uint32_t failures;

MEGAMOE_DEVICE std::uint32_t lane() {
  return threadIdx.x % kLanesOfWarp;
}
MEGAMOE_DEVICE std::uint32_t warp() {
  return threadIdx.x / kLanesOfWarp;
}
MEGAMOE_DEVICE std::uint32_t cluster_rank() {
  std::uint32_t v;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(v));
  return v;
}
MEGAMOE_DEVICE std::uint32_t cluster_size() {
  std::uint32_t v;
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(v));
  return v;
}
// The same place in the shared memory of another CTA of the cluster.
MEGAMOE_DEVICE std::uint32_t in_cta(std::uint32_t shared_address, std::uint32_t rank) {
  std::uint32_t v;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(v) : "r"(shared_address), "r"(rank));
  return v;
}
MEGAMOE_DEVICE void fence_cluster() {
  asm volatile("fence.acq_rel.cluster;" : : : "memory");
}
MEGAMOE_DEVICE void fence_device() {
  asm volatile("fence.acq_rel.gpu;" : : : "memory");
}

__device__ __noinline__ void fail(
    const char* text, std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t d) {
  if (atomicAdd(&failures, 1U) == 0) {
    volatile Report* report = emulated_settings.report;
    const int last = sizeof(report->text) - 1;
    for (int i = 0; i < last && text[i] != '\0'; ++i)
      report->text[i] = text[i];
    report->cta = blockIdx.x;
    report->thread = threadIdx.x;
    const std::uint64_t values[] = {a, b, c, d};
    for (int i = 0; i < 4; ++i)
      report->values[i] = values[i];
    __threadfence_system();
    report->is_set = 1;
    __threadfence_system();
  } else {
    for (int i = 0; i < 200; ++i)  // the first one needs time to write
      ptx::sleep_nanoseconds(100'000);
  }
  asm volatile("trap;");
}

MEGAMOE_DEVICE void expect(bool holds,
                           const char* text,
                           std::uint64_t a = 0,
                           std::uint64_t b = 0,
                           std::uint64_t c = 0,
                           std::uint64_t d = 0) {
  if (!holds) fail(text, a, b, c, d);
}

MEGAMOE_DEVICE bool is_late() {
  return emulated_settings.timeout_ns != 0 &&
         ptx::global_nanoseconds() - cta.began_ns > emulated_settings.timeout_ns;
}

// Mostly a few microseconds, one time in `rarely` up to 2 ms, which is longer than a tile's work;
// the same for a whole warp.
__device__ __noinline__ void sleep_at_random(std::uint32_t rarely) {
  std::uint32_t hash =
      static_cast<std::uint32_t>(clock64()) * 2654435761U ^ warp() * 40503U ^ blockIdx.x * 65599U;
  hash ^= hash >> 15;
  hash *= 2246822519U;
  hash ^= hash >> 13;
  if (__activemask() == ~0U) hash = __shfl_sync(~0U, hash, 0);
  std::uint32_t left = hash % rarely != 0 ? hash >> 8 & 4095 : hash >> 8 & 0x1FFFFF;
  while (left > 0) {
    const std::uint32_t now = left < 500'000 ? left : 500'000;  // nanosleep takes up to 1 ms
    ptx::sleep_nanoseconds(now);
    left -= now;
  }
}

MEGAMOE_DEVICE void jitter(std::uint32_t rarely) {
  if (emulated_settings.has_jitter != 0) sleep_at_random(rarely);
}

// Called first by every thread of a rewritten kernel.
extern "C" __device__ __noinline__ void emulated_begin() {
  if (warp() == 0) {
    ptx::mbarrier_init(ptx::shared_address(&cta.copied[lane()]), 1);
    cta.copied_parity[lane()] = 0;
  }
  if (threadIdx.x == 0) {
    cta.began_ns = ptx::global_nanoseconds();
    cta.columns = 0;
    cta.queued = 0;
    cta.issuing_warp = kNobody;
    const Settings& s = emulated_settings;
    if (s.magic != kMagic) asm volatile("trap;");  // no report to write to either
    expect(gridDim.y == 1 && gridDim.z == 1 && blockDim.y == 1 && blockDim.z == 1,
           "grids and blocks of more than one dimension are not emulated");
    expect(gridDim.x <= s.num_ctas,
           "the grid has # CTAs, the emulation was made for #",
           gridDim.x,
           s.num_ctas);
    expect(cluster_size() == 2, "clusters of # CTAs are not emulated, only pairs", cluster_size());
  }
  ptx::fence_mbarrier_init();
  __syncthreads();
}

// Waits of the kernel's own that did not succeed yet come here.
extern "C" __device__ __noinline__ void emulated_tick(std::uint32_t barrier, std::uint32_t parity) {
  expect(!is_late(), "timeout: mbarrier at shared address #x, parity #", barrier, parity);
}

}  // namespace megamoe::emulation
