#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "runtime/file_handle.hpp"

namespace megamoe {

/// One rank's symmetric memory as mapped in this process. Page aligned, zero when it is new; has no
/// name anywhere, so that nothing is left of it when the processes that map it are gone.
class Segment {
 public:
  /// Memory of this process alone.
  static std::shared_ptr<Segment> anonymous(std::uint64_t bytes);
  /// Memory that other processes may map too; its pages are reserved here and now, so that a lack
  /// of memory is an Error and not a bus error later.
  static std::shared_ptr<Segment> shareable(std::uint64_t bytes);
  /// The memory that another process made shareable, from the descriptor that it sent.
  static std::shared_ptr<Segment> received(FileHandle file, std::uint64_t bytes);
  /// Memory of the caller's.
  static std::shared_ptr<Segment> adopted(void* base, std::uint64_t bytes);
  /// Memory that `owner` gives back when it goes.
  static std::shared_ptr<Segment> held(std::shared_ptr<void> owner,
                                       void* base,
                                       std::uint64_t bytes);

  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  std::byte* base() const { return base_; }
  std::uint64_t bytes() const { return bytes_; }
  /// What another process needs to map it; -1 for memory that it can't.
  int descriptor() const { return file_.get(); }
  /// Once every process has its mapping the descriptor is of no use.
  void close_descriptor() { file_.close(); }

 private:
  Segment(std::shared_ptr<void> owner, void* base, std::uint64_t bytes, FileHandle file)
      : owner_(std::move(owner)),
        base_(static_cast<std::byte*>(base)),
        bytes_(bytes),
        file_(std::move(file)) {}

  std::shared_ptr<void> owner_;  // null: the caller's
  std::byte* base_;
  std::uint64_t bytes_;
  FileHandle file_;
};

}  // namespace megamoe
