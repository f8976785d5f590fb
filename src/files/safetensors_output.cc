#include "files/safetensors_output.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/check.hpp"
#include "files/printable.hpp"

namespace megamoe {
namespace {

std::atomic<unsigned> next_serial{0};  // of this process's temporary names

std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

/// Where a file written to `path` must land: renaming onto a symbolic link would replace the link.
std::string behind_links(const std::string& path) {
  constexpr int kMostLinks = 40;
  std::filesystem::path target(path);
  for (int link = 0; link < kMostLinks; ++link) {
    std::error_code failed;
    const std::filesystem::path next = std::filesystem::read_symlink(target, failed);
    if (failed) return target.string();  // not a link
    target = target.parent_path() / next;
  }
  throw Error(ErrorCode::kInvalidArgument,
              sentence(printable(path), " can't be written: it is a link to a link to a link ..."));
}

/// True when the tensors, back to back in this order, are each aligned to their own element.
bool are_aligned_in_order(std::span<const TensorEntry> entries) {
  std::uint64_t offset = 0;
  for (const TensorEntry& entry : entries) {
    const int alignment = std::max(1, facts(entry.type).bits / 8);
    if (offset % static_cast<std::uint64_t>(alignment) != 0) return false;
    offset += bytes_of(entry.type, entry.shape).value_or(0);
  }
  return true;
}

/// Places in the file: in the caller's order where that aligns each tensor to its own element (so
/// that the first one is aligned as the file's data is, to 64 bytes), else widest elements first.
std::vector<TensorEntry> place(const std::string& path, std::span<const TensorSpec> specs) {
  std::vector<TensorEntry> entries;
  for (const TensorSpec& spec : specs)
    entries.push_back({spec.name, spec.type, spec.shape, 0, 0});
  if (!are_aligned_in_order(entries)) {
    std::stable_sort(
        entries.begin(), entries.end(), [](const TensorEntry& a, const TensorEntry& b) {
          return facts(a.type).bits > facts(b.type).bits;
        });
  }
  std::uint64_t offset = 0;
  for (TensorEntry& entry : entries) {
    const std::optional<std::uint64_t> bytes = bytes_of(entry.type, entry.shape);
    std::uint64_t end = 0;
    require(bytes && !__builtin_add_overflow(offset, *bytes, &end),
            ErrorCode::kInvalidArgument,
            path,
            ": tensor ",
            printable(entry.name),
            " of shape ",
            to_string(entry.shape),
            " is too large for a file");
    entry.begin = offset;
    entry.end = offset = end;
  }
  return entries;
}

void sync_folder(const std::string& path) {
  const int folder = ::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0)
    return;  // the file is complete and named; its folder merely can't be opened for reading
  ::fsync(folder);
  ::close(folder);
}

}  // namespace

void require_writable(const std::string& path) {
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::kInvalidArgument, sentence(printable(path), " can't be written: ", why));
  };
  if (path.empty()) refuse("the name is empty");
  const std::string target = behind_links(path);
  struct stat status {};
  const std::string folder = folder_of(target);
  if (::stat(folder.c_str(), &status) != 0)
    refuse("its folder " + printable(folder) + ": " + std::strerror(errno));
  if (!S_ISDIR(status.st_mode)) refuse(printable(folder) + " is not a folder");
  if (target.back() == '/') refuse("it names a folder");
  if (::stat(target.c_str(), &status) == 0) {
    if (S_ISDIR(status.st_mode)) refuse("it is a folder");
    if (!S_ISREG(status.st_mode)) refuse("it is not a plain file");
    if (::access(target.c_str(), W_OK) != 0) refuse(std::strerror(errno));
  } else if (errno != ENOENT) {
    refuse(std::strerror(errno));
  }
  if (::access(folder.c_str(), W_OK | X_OK) != 0)
    refuse("its folder " + printable(folder) + ": " + std::strerror(errno));
}

SafetensorsOutput SafetensorsOutput::create(const std::string& path,
                                            std::span<const TensorSpec> tensors) {
  require_writable(path);
  SafetensorsOutput output;
  output.path_ = behind_links(path);
  output.tensors_ = place(path, tensors);
  const std::string header = format_safetensors_header(output.tensors_);
  output.data_offset_ = header.size();
  const std::uint64_t data_bytes = output.tensors_.empty() ? 0 : output.tensors_.back().end;
  output.make_temporary();
  output.reserve_bytes(header.size() + data_bytes);
  std::memcpy(output.file_.data(), header.data(), header.size());
  return output;
}

/// A file without a name, if the file system and /proc allow it: whatever ends this process,
/// nothing of it stays. Else one that has its temporary name from the start.
void SafetensorsOutput::make_temporary() {
  creator_ = ::getpid();
  if (::access("/proc/self/fd", X_OK) == 0)
    descriptor_ = ::open(folder_of(path_).c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
  if (descriptor_ < 0)
    take_temporary_name([this](const char* name) {
      descriptor_ = ::open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      return descriptor_ >= 0;
    });
  struct stat existing {};
  if (::stat(path_.c_str(), &existing) == 0) ::fchmod(descriptor_, existing.st_mode & 0777);
}

/// Calls `take` with names beside the file until one is free; `take` sets errno when it fails.
template <class Take>
void SafetensorsOutput::take_temporary_name(Take take) {
  constexpr int kAttempts = 100;  // leftovers of a killed process that had our id
  const std::filesystem::path target(path_);
  const std::string start = target.filename().string().substr(0, 200);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const std::string name = sentence(".", start, ".", creator_, ".", next_serial++);
    const std::string candidate = (std::filesystem::path(folder_of(path_)) / name).string();
    if (take(candidate.c_str())) {
      temporary_ = candidate;
      return;
    }
    if (errno != EEXIST) break;
  }
  throw Error(ErrorCode::kInvalidArgument,
              sentence(printable(path_), " can't be written: ", std::strerror(errno)));
}

/// Takes the disk space now: a mapping over space that is not there would be a bus error later.
void SafetensorsOutput::reserve_bytes(std::uint64_t bytes) {
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::kBadFile, sentence(printable(path_), " needs ", bytes, " bytes: ", why));
  };
  // Past this limit the kernel does not merely fail, it sends a signal that ends the process.
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      bytes > limit.rlim_cur)
    refuse(sentence("this process may write files of at most ", limit.rlim_cur, " bytes"));
  if (bytes > static_cast<std::uint64_t>(std::numeric_limits<off_t>::max()))
    refuse("no file can be so large");
  // Said here because it can be said with the bound; the space itself is taken below.
  struct statvfs disk {};
  if (::fstatvfs(descriptor_, &disk) == 0) {
    const std::uint64_t free_bytes = std::uint64_t{disk.f_bavail} * disk.f_frsize;
    if (bytes > free_bytes) refuse(sentence("the disk has ", free_bytes, " free"));
  }
  if (const int why = ::posix_fallocate(descriptor_, 0, static_cast<off_t>(bytes)); why != 0)
    refuse(std::strerror(why));
  void* mapping = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
  if (mapping == MAP_FAILED) refuse(sentence("it can't be mapped: ", std::strerror(errno)));
  file_ = {static_cast<std::uint8_t*>(mapping), bytes};
}

std::span<std::uint8_t> SafetensorsOutput::tensor(const std::string& name) const {
  for (const TensorEntry& entry : tensors_)
    if (entry.name == name)
      return file_.subspan(data_offset_ + entry.begin, entry.end - entry.begin);
  throw Error(ErrorCode::kInternal, sentence(path_, " has no tensor ", printable(name)));
}

void SafetensorsOutput::release(std::span<const std::uint8_t> part) const {
  if (part.empty()) return;
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t begin = static_cast<std::uint64_t>(part.data() - file_.data()) / page * page;
  const std::uint64_t end = static_cast<std::uint64_t>(part.data() - file_.data()) + part.size();
  ::sync_file_range(descriptor_,
                    static_cast<off_t>(begin),
                    static_cast<off_t>(end - begin),
                    SYNC_FILE_RANGE_WRITE);
  ::madvise(file_.data() + begin,
            end - begin,
            MADV_DONTNEED);  // shared: dirty pages stay in the page cache
}

void SafetensorsOutput::commit() {
  MEGAMOE_CHECK(descriptor_ >= 0 && !is_committed_ && ::getpid() == creator_);
  const auto refuse = [&](const char* step) {
    throw Error(ErrorCode::kBadFile,
                sentence(printable(path_),
                         " (",
                         file_.size(),
                         " bytes) can't be ",
                         step,
                         ": ",
                         std::strerror(errno)));
  };
  if (::msync(file_.data(), file_.size(), MS_SYNC) != 0 || ::fsync(descriptor_) != 0)
    refuse("brought to the disk");
  // A link can't replace a file, a renaming can: so first a temporary name, where there is none
  // yet.
  if (temporary_.empty())
    take_temporary_name([this](const char* name) {
      const std::string unnamed = "/proc/self/fd/" + std::to_string(descriptor_);
      return ::linkat(AT_FDCWD, unnamed.c_str(), AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0;
    });
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) refuse("given its name");
  temporary_.clear();
  is_committed_ = true;
  sync_folder(path_);
}

void SafetensorsOutput::close() noexcept {
  if (!file_.empty()) ::munmap(file_.data(), file_.size());
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty() && ::getpid() == creator_) ::unlink(temporary_.c_str());
  file_ = {};
  descriptor_ = -1;
  temporary_.clear();
}

SafetensorsOutput::~SafetensorsOutput() {
  close();
}

SafetensorsOutput::SafetensorsOutput(SafetensorsOutput&& other) noexcept {
  *this = std::move(other);
}

SafetensorsOutput& SafetensorsOutput::operator=(SafetensorsOutput&& other) noexcept {
  if (this == &other) return *this;
  close();
  path_ = std::move(other.path_);
  temporary_ = std::exchange(other.temporary_, {});
  descriptor_ = std::exchange(other.descriptor_, -1);
  is_committed_ = other.is_committed_;
  creator_ = other.creator_;
  file_ = std::exchange(other.file_, {});
  data_offset_ = other.data_offset_;
  tensors_ = std::move(other.tensors_);
  return *this;
}

}  // namespace megamoe
