#pragma once

#include <nccl.h>

#include <string>

namespace megamoe {

/// What is called of NCCL. The library is loaded by its soname when it is first needed, so that a
/// process that has one already (PyTorch's) keeps one, and a program runs without any as long as
/// nobody asks for rank processes on GPUs.
struct NcclCalls {
  int version = 0;                              ///< of the library, as ncclGetVersion has it
  int (*ranks_in_reach)(ncclComm_t) = nullptr;  ///< by loads and stores, this rank included

  decltype(&::ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&::ncclCommInitRankConfig) init_rank = nullptr;
  decltype(&::ncclCommGetAsyncError) get_async_error = nullptr;
  decltype(&::ncclCommAbort) abort = nullptr;
  decltype(&::ncclGetErrorString) error_string = nullptr;
  decltype(&::ncclGetLastError) last_error = nullptr;
  decltype(&::ncclMemAlloc) allocate = nullptr;
  decltype(&::ncclMemFree) free = nullptr;
  decltype(&::ncclCommWindowRegister) register_window = nullptr;
  decltype(&::ncclCommWindowDeregister) deregister_window = nullptr;
  /// From 2.29 on; null before.
  ncclResult_t (*device_pointer)(ncclWindow_t, std::size_t offset, int rank, void**) = nullptr;
};

/// Why there is no NCCL that can be used, with the versions where they are the reason; empty where
/// there is one.
std::string why_no_nccl();

/// Throws Error(kUnsupportedMachine) with that sentence.
const NcclCalls& nccl();

/// "2.28.9" of 22809.
std::string nccl_version_text(int version);

}  // namespace megamoe
