#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "files/safetensors_header.hpp"

namespace megamoe {

/// A tensor to write.
struct TensorSpec {
  std::string name;
  DataType type = DataType::kU8;
  std::vector<std::int64_t> shape;
};

/// A safetensors file in the making. Its header stands and its disk space is taken from the start;
/// the tensors are zeros in a shared mapping that threads, and processes forked after create(),
/// fill where they like. commit() makes it appear under its name, whole; without commit() nothing
/// appears, and a file that was there stays as it was.
///
/// Move-only. Only the process that created it commits or cleans up.
class SafetensorsOutput {
 public:
  /// Throws Error(kInvalidArgument) if `path` can't be written (no such folder, no permission, a
  /// folder, a device), and Error(kBadFile) with the bytes needed if the disk can't hold it.
  static SafetensorsOutput create(const std::string& path, std::span<const TensorSpec> tensors);

  SafetensorsOutput(SafetensorsOutput&& other) noexcept;
  SafetensorsOutput& operator=(SafetensorsOutput&& other) noexcept;
  SafetensorsOutput(const SafetensorsOutput&) = delete;
  SafetensorsOutput& operator=(const SafetensorsOutput&) = delete;
  ~SafetensorsOutput();

  /// Where the bytes of a tensor go, aligned to its element type; throws Error(kInternal) for an
  /// unknown name.
  std::span<std::uint8_t> tensor(const std::string& name) const;

  /// Starts writing a filled part to the disk and takes its pages off this process's memory; its
  /// bytes stay in the file.
  void release(std::span<const std::uint8_t> part) const;

  /// Waits until all bytes are on the disk, then gives the file its name. Once only.
  void commit();

  const std::string& path() const { return path_; }

 private:
  SafetensorsOutput() = default;
  void make_temporary();
  template <class Take>
  void take_temporary_name(Take take);
  void reserve_bytes(std::uint64_t bytes);
  void close() noexcept;

  std::string path_;       // after symbolic links
  std::string temporary_;  // empty while the file has no name, and once it has its own
  bool is_committed_ = false;
  int descriptor_ = -1;
  pid_t creator_ = 0;
  std::span<std::uint8_t> file_;
  std::uint64_t data_offset_ = 0;
  std::vector<TensorEntry> tensors_;
};

/// Throws Error(kInvalidArgument) if a file can't be put at `path`; for saying so before the work
/// begins.
void require_writable(const std::string& path);

}  // namespace megamoe
