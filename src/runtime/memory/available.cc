#include "runtime/memory/available.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>

#include "base/check.hpp"

namespace megamoe {
namespace {

constexpr std::uint64_t kUnbounded = std::numeric_limits<std::uint64_t>::max();

std::optional<std::uint64_t> number_in(const std::string& path) {
  std::ifstream file(path);
  std::uint64_t value = 0;
  if (file >> value) return value;  // "max" is no number: no bound
  return std::nullopt;
}

std::uint64_t memory_of_computer(const std::string& root) {
  std::ifstream file(root + "/proc/meminfo");
  std::string key;
  std::uint64_t kib = 0;
  for (std::string rest; file >> key >> kib; std::getline(file, rest))
    if (key == "MemAvailable:") return kib * 1024;
  return kUnbounded;
}

/// The cgroup of this process in a hierarchy: version 2's line begins "0::", version 1's names its
/// controllers.
std::optional<std::string> control_group(const std::string& root, const std::string& controller) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    if (line.substr(first + 1, second - first - 1) == controller) return line.substr(second + 1);
  }
  return std::nullopt;
}

/// Cached pages of files, which a group counts as used and gives back when memory runs short: a
/// checkpoint that was read may be most of it. Shared memory is not among them.
std::uint64_t cached_in(const std::string& folder, const std::string& prefix) {
  std::ifstream file(folder + "/memory.stat");
  std::uint64_t cached = 0;
  std::string key;
  for (std::uint64_t bytes = 0; file >> key >> bytes;)
    if (key == prefix + "inactive_file" || key == prefix + "active_file") cached += bytes;
  return cached;
}

/// The files of a control group that say what it may take and has taken.
struct GroupFiles {
  const char* limit;
  const char* usage;
  const char* stat_prefix;  // of the sums over the groups below it
};

std::uint64_t left_in(const std::string& folder, const GroupFiles& files) {
  const auto most = number_in(folder + files.limit);
  const auto usage = number_in(folder + files.usage);
  if (!most || !usage) return kUnbounded;
  const std::uint64_t used = *usage - std::min(*usage, cached_in(folder, files.stat_prefix));
  return *most > used ? *most - used : 0;
}

/// In a container the group's own path is often not visible and its limit lies at the root.
std::uint64_t memory_of_control_group(const std::string& root) {
  constexpr GroupFiles kVersion2{"/memory.max", "/memory.current", ""};
  constexpr GroupFiles kVersion1{"/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_"};
  std::uint64_t bytes = kUnbounded;
  for (const std::string& path : {control_group(root, "").value_or(""), std::string()})
    bytes = std::min(bytes, left_in(root + "/sys/fs/cgroup" + path, kVersion2));
  for (const std::string& path : {control_group(root, "memory").value_or(""), std::string()})
    bytes = std::min(bytes, left_in(root + "/sys/fs/cgroup/memory" + path, kVersion1));
  return bytes;
}

}  // namespace

AvailableMemory available_memory(const std::string& root) {
  const std::uint64_t computer = memory_of_computer(root);
  const std::uint64_t group = memory_of_control_group(root);
  if (group < computer) return {group, "the control group"};
  return {computer, "the computer"};
}

std::uint64_t file_size_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kUnbounded;
  return limit.rlim_cur;
}

void require_memory(int ranks, std::uint64_t bytes) {
  const std::uint64_t needed = static_cast<std::uint64_t>(ranks) * bytes;
  const AvailableMemory available = available_memory();
  require(needed <= available.bytes,
          ErrorCode::kRunFailed,
          "the symmetric memory of ",
          ranks,
          ranks == 1 ? " rank needs " : " ranks needs ",
          needed,
          " bytes (",
          bytes,
          " each); ",
          available.source,
          " has ",
          available.bytes,
          " available. A smaller capacity or pool needs less");
  require(bytes <= file_size_limit(),
          ErrorCode::kRunFailed,
          "a rank's symmetric memory needs ",
          bytes,
          " bytes; the limit on a file's size (ulimit -f) is ",
          file_size_limit());
}

}  // namespace megamoe
