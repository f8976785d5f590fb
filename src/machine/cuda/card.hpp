#pragma once

// What every card that the GPU machines run on has.
namespace megamoe::gpu {

inline constexpr int kWarpThreads = 32;
inline constexpr int kWarpgroupThreads = 128;
inline constexpr int kSharedMemoryLimit = 227 * 1024;  // of a CTA
inline constexpr int kRegisterFile = 65'536;           // of an SM

}  // namespace megamoe::gpu
