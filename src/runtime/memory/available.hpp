#pragma once

#include <cstdint>
#include <string>

namespace megamoe {

/// The tightest bound on memory that this process may still take, and what sets it.
struct AvailableMemory {
  std::uint64_t bytes;
  std::string source;  ///< "the computer", "the control group"
};

/// `root` stands for / in tests.
AvailableMemory available_memory(const std::string& root = "");

/// Bytes that a file of this process may have, memfd included (RLIMIT_FSIZE); exceeding it kills.
std::uint64_t file_size_limit();

/// Throws Error(kRunFailed) naming the bytes needed and available unless `ranks` segments of
/// `bytes` fit this computer.
void require_memory(int ranks, std::uint64_t bytes);

}  // namespace megamoe
