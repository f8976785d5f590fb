#pragma once

#include <cstddef>
#include <cstdint>

// What the host side and the device library of the emulation tell each other.
namespace megamoe::emulation {

// How asynchronous the emulated tensor core is. Plain: each operation is done when it is issued.
struct Modes {
  bool is_deferred = false;  // multiply and copy wait for the next commit, the latest PTX allows
  bool has_jitter = false;   // random delays before commits, copies and loads arrive
  bool operator==(const Modes&) const = default;
};

inline constexpr std::uint32_t kMagic = 0x6D67'6501;
inline constexpr std::uint32_t kMapBytes = 128;  // sizeof(CUtensorMap)
inline constexpr std::uint32_t kMaps = 64;
inline constexpr std::uint32_t kQueueLength = 256;  // deferred operations of a CTA

// A tensor map that was encoded through the emulation; the device finds it by its content.
struct MapEntry {
  std::uint8_t content[kMapBytes];
  std::uint32_t bytes;  // of a box, as the copy engine moves it
  std::uint32_t rows;   // of a box
  std::uint32_t dimensions;
  std::uint32_t is_float4;  // 16U4_ALIGN16B: encoded as bytes, expanded by the device library
  std::uint32_t is_swizzled;
  std::uint32_t unused[3];
};

// One deferred operation.
struct TensorOperation {
  std::uint64_t a;  // matrix descriptors; of a copy only the first
  std::uint64_t b;
  std::uint32_t is_multiply;
  std::uint32_t to;  // tensor memory
  std::uint32_t instruction;
  std::uint32_t a_scales;
  std::uint32_t b_scales;
  std::uint32_t accumulates;
};

// The first thing that went wrong, in host memory, since the kernel traps after it. "#" in the text
// stands for the next value, "#x" for it in hexadecimal.
struct Report {
  std::uint32_t is_set;
  std::uint32_t cta;
  std::uint32_t thread;
  std::uint32_t unused;
  std::uint64_t values[4];
  char text[160];
};

// Lies in each cubin as the global `emulated_settings`.
struct Settings {
  std::uint32_t* tensor_memory;  // [ctas][kTensorLanes][kTensorColumns]
  TensorOperation* queues;       // [ctas][kQueueLength]
  const MapEntry* maps;
  Report* report;
  std::uint64_t timeout_ns;  // of a launch; 0: none
  std::uint32_t magic;
  std::uint32_t num_maps;
  std::uint32_t num_ctas;
  std::uint32_t is_deferred;
  std::uint32_t has_jitter;
};

// A kernel that was rewritten and assembled, inside the executable.
struct Cubin {
  const char* name;
  const void* data;
  std::size_t bytes;
};

// Shared memory that the device library takes: the dynamic part moves up to the next multiple of
// its alignment.
inline constexpr int kSharedMemoryTaken = 1024;

}  // namespace megamoe::emulation
