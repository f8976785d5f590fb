#pragma once

// What differs between processors and is not a vector instruction; the one place of this machine
// that asks which processor it is compiled for.
namespace megamoe::cpu {

#if defined(__x86_64__)

inline constexpr bool kIsX86 = true;

/// Between two polls: leaves the core to its other thread and spares the memory bus.
inline void relax() {
  __builtin_ia32_pause();
}

/// Highway's AVX3 target does not say it.
inline bool has_bf16_dot_products() {
  return __builtin_cpu_supports("avx512bf16") != 0;
}

#else

#  if defined(__aarch64__)
inline void relax() {
  asm volatile("yield");
}
#  else
inline void relax() {}
#  endif

inline bool has_bf16_dot_products() {
  return false;
}

#endif

}  // namespace megamoe::cpu
