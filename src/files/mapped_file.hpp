#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace megamoe {

/// A whole file, mapped read-only. Move-only. Everything that is not a plain readable file is
/// refused by name.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  std::span<const std::uint8_t> bytes() const { return bytes_; }

  /// Throws if the file became shorter since it was mapped: its lost pages would be a bus error.
  /// Call it before each long read; what shrinks during the read is beyond it.
  void require_whole() const;

  /// Gives the pages under `part` back to the kernel. They stay readable (from the page cache or
  /// the disk), but no longer count as this process's memory.
  void release(std::span<const std::uint8_t> part) const;

 private:
  std::string path_;
  int descriptor_ = -1;
  std::span<const std::uint8_t> bytes_;
};

}  // namespace megamoe
