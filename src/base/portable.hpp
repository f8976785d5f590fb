#pragma once

// Protocol text is compiled once for the host and once for a device. Pure arithmetic needs no
// macro: it is constexpr, and nvcc takes it on a device through --expt-relaxed-constexpr.
#if defined(__CUDACC__)
#  define MEGAMOE_PROTOCOL __device__ __forceinline__
#  define MEGAMOE_DEVICE __device__ __forceinline__
#  define MEGAMOE_UNROLL _Pragma("unroll")
#  define MEGAMOE_NO_UNROLL _Pragma("unroll 1")
#else
#  define MEGAMOE_PROTOCOL inline
#  define MEGAMOE_DEVICE inline
#  define MEGAMOE_UNROLL
#  define MEGAMOE_NO_UNROLL
#endif
