#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/file_handle.hpp"
#include "runtime/group/link.hpp"

namespace megamoe {

/// A thread that polls the other ranks' life lines and tells its observers of each that ends.
class DeathWatch {
 public:
  /// By rank; this rank's own is not open.
  explicit DeathWatch(std::vector<FileHandle> life_lines);
  ~DeathWatch();
  DeathWatch(const DeathWatch&) = delete;
  DeathWatch& operator=(const DeathWatch&) = delete;

  /// Told at once of those that have ended before. Not called any more once the result is gone,
  /// which must be before this.
  std::shared_ptr<void> observe(Link::OnDeath on_death);

  /// Whether a rank has ended, or ends within so many milliseconds.
  bool has_died(int rank, int within_ms) const;

 private:
  void watch();
  void tell(int rank);

  std::vector<FileHandle> life_lines_;
  FileHandle stop_;  // an eventfd
  std::mutex mutex_;
  std::map<int, Link::OnDeath> observers_;
  int next_observer_ = 0;
  std::vector<int> dead_;
  std::thread thread_;
};

}  // namespace megamoe
