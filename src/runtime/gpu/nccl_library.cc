#include "runtime/gpu/nccl_library.hpp"

#include <dlfcn.h>
#include <nccl_device.h>

#include "base/check.hpp"

namespace megamoe {
namespace {

constexpr const char* kSoname = "libnccl.so.2";
constexpr int kMajor = 10'000;  // 22809 is 2.28.9
constexpr int kMinor = 100;
constexpr int kOldest = 22'800;  // the first with windows that kernels load from and store to

struct Loaded {
  NcclCalls calls;
  std::string why_not;
};

using TeamOf = ncclTeam_t (*)(ncclComm_t);
TeamOf lsa_team = nullptr;

template <class Function>
bool find(void* library, const char* name, Function& to) {
  to = reinterpret_cast<Function>(dlsym(library, name));
  return to != nullptr;
}

/// By the loader's own search, else where the build found it.
void* open_library() {
  void* library = dlopen(kSoname, RTLD_NOW | RTLD_LOCAL);
  return library != nullptr ? library : dlopen(MEGAMOE_NCCL_LIBRARY, RTLD_NOW | RTLD_LOCAL);
}

std::string why_not_version(int version) {
  if (version >= kOldest && version / kMajor == NCCL_VERSION_CODE / kMajor) return {};
  return sentence(kSoname,
                  " is NCCL ",
                  nccl_version_text(version),
                  "; this build is of ",
                  nccl_version_text(NCCL_VERSION_CODE),
                  " and takes ",
                  nccl_version_text(kOldest),
                  " to ",
                  NCCL_VERSION_CODE / kMajor,
                  ".x");
}

/// The first function that the library lacks; null when it has all.
const char* missing_call(void* library, NcclCalls& calls) {
  const std::pair<const char*, bool> found[] = {
      {"ncclGetUniqueId", find(library, "ncclGetUniqueId", calls.get_unique_id)},
      {"ncclCommInitRankConfig", find(library, "ncclCommInitRankConfig", calls.init_rank)},
      {"ncclCommGetAsyncError", find(library, "ncclCommGetAsyncError", calls.get_async_error)},
      {"ncclCommAbort", find(library, "ncclCommAbort", calls.abort)},
      {"ncclGetErrorString", find(library, "ncclGetErrorString", calls.error_string)},
      {"ncclGetLastError", find(library, "ncclGetLastError", calls.last_error)},
      {"ncclMemAlloc", find(library, "ncclMemAlloc", calls.allocate)},
      {"ncclMemFree", find(library, "ncclMemFree", calls.free)},
      {"ncclCommWindowRegister", find(library, "ncclCommWindowRegister", calls.register_window)},
      {"ncclCommWindowDeregister",
       find(library, "ncclCommWindowDeregister", calls.deregister_window)},
      {"ncclTeamLsa", find(library, "ncclTeamLsa", lsa_team)}};
  for (const auto& [name, is_there] : found)
    if (!is_there) return name;
  return nullptr;
}

Loaded load() {
  Loaded loaded;
  void* const library = open_library();
  if (library == nullptr) {
    loaded.why_not = sentence("NCCL can't be loaded: ", dlerror());
    return loaded;
  }
  decltype(&::ncclGetVersion) get_version = nullptr;
  if (!find(library, "ncclGetVersion", get_version) ||
      get_version(&loaded.calls.version) != ncclSuccess) {
    loaded.why_not = sentence(kSoname, " does not say its version");
    return loaded;
  }
  loaded.why_not = why_not_version(loaded.calls.version);
  if (!loaded.why_not.empty()) return loaded;
  if (const char* const missing = missing_call(library, loaded.calls); missing != nullptr)
    loaded.why_not =
        sentence(kSoname, ", NCCL ", nccl_version_text(loaded.calls.version), ", has no ", missing);
  find(library, "ncclGetLsaDevicePointer", loaded.calls.device_pointer);
  loaded.calls.ranks_in_reach = [](ncclComm_t comm) { return lsa_team(comm).nRanks; };
  return loaded;
}

/// Once a process; it stays loaded, as its threads may outlive whoever asked for it.
const Loaded& loaded() {
  static const Loaded once = load();
  return once;
}

}  // namespace

std::string nccl_version_text(int version) {
  return sentence(version / kMajor, ".", version % kMajor / kMinor, ".", version % kMinor);
}

std::string why_no_nccl() {
  return loaded().why_not;
}

const NcclCalls& nccl() {
  const Loaded& all = loaded();
  require(all.why_not.empty(), ErrorCode::kUnsupportedMachine, all.why_not);
  return all.calls;
}

}  // namespace megamoe
