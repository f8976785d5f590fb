#include "files/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.hpp"

namespace megamoe {
namespace {

std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace

MappedFile::MappedFile(const std::string& path) : path_(path) {
  // Without O_NONBLOCK, opening a pipe that nobody writes would wait for ever.
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  require(descriptor_ >= 0, ErrorCode::kBadFile, path, " can't be opened: ", std::strerror(errno));
  try {
    struct stat status {};
    require(::fstat(descriptor_, &status) == 0,
            ErrorCode::kBadFile,
            path,
            " can't be examined: ",
            std::strerror(errno));
    require(!S_ISDIR(status.st_mode), ErrorCode::kBadFile, path, " is a folder, not a file");
    require(S_ISREG(status.st_mode), ErrorCode::kBadFile, path, " is not a plain file");
    require(status.st_size > 0, ErrorCode::kBadFile, path, " is empty");
    const auto size = static_cast<std::size_t>(status.st_size);
    void* mapping = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor_, 0);
    require(mapping != MAP_FAILED,
            ErrorCode::kBadFile,
            path,
            " (",
            size,
            " bytes) can't be mapped: ",
            std::strerror(errno));
    bytes_ = {static_cast<const std::uint8_t*>(mapping), size};
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::uint8_t*>(bytes_.data()), bytes_.size());
  if (descriptor_ >= 0) ::close(descriptor_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

void MappedFile::require_whole() const {
  struct stat status {};
  require(::fstat(descriptor_, &status) == 0,
          ErrorCode::kBadFile,
          path_,
          " can't be examined: ",
          std::strerror(errno));
  require(static_cast<std::size_t>(status.st_size) >= bytes_.size(),
          ErrorCode::kBadFile,
          path_,
          " shrank while it was in use: it had ",
          bytes_.size(),
          " bytes and has ",
          status.st_size);
}

void MappedFile::release(std::span<const std::uint8_t> part) const {
  if (part.empty()) return;
  // Rounded outward: a page shared with a neighbour is cheap to fault in again, and one kept at
  // each end of thousands of tensors would add up.
  const std::size_t page = page_bytes();
  const auto begin = reinterpret_cast<std::uintptr_t>(part.data()) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(part.data() + part.size());
  ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace megamoe
