#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "sim/random.hpp"

namespace megamoe::sim {

/// A plain write that others need not see yet.
struct PendingWrite {
  std::byte* place = nullptr;
  std::vector<std::byte> bytes;
  std::uint64_t added = 0;  ///< without bytes: an add to the 64-bit word at `place`
  bool has_landed = false;

  void land() {
    if (has_landed) return;
    has_landed = true;
    if (!bytes.empty()) {
      std::memcpy(place, bytes.data(), bytes.size());
      return;
    }
    std::uint64_t word = 0;
    std::memcpy(&word, place, sizeof word);
    word += added;
    std::memcpy(place, &word, sizeof word);
  }
};

/// What one lane wrote, or what was written by those it synchronised with, and what nobody has
/// released yet. Such writes land whenever the memory likes, in any order, and at the latest when a
/// lane that has them releases: protocol text that forgets to order a write before its signal
/// leaves the reader with the old bytes.
class WriteBuffer {
 public:
  void add(PendingWrite write) {
    writes_.push_back(std::make_shared<PendingWrite>(std::move(write)));
  }
  /// These lanes synchronise: each may release what any of them wrote.
  static void synchronise(const std::vector<WriteBuffer*>& lanes) {
    std::vector<std::shared_ptr<PendingWrite>> all;
    for (const WriteBuffer* lane : lanes)
      for (const auto& write : lane->writes_)
        if (!write->has_landed && std::find(all.begin(), all.end(), write) == all.end())
          all.push_back(write);
    for (WriteBuffer* lane : lanes)
      lane->writes_ = all;
  }
  void release() {
    for (const auto& write : writes_)
      write->land();
    writes_.clear();
  }
  /// Memory's own choice.
  void land_some(Random& random) {
    if (writes_.empty() || !random.one_in(4)) return;
    writes_[random.below(writes_.size())]->land();
  }
  bool is_empty() const {
    for (const auto& write : writes_)
      if (!write->has_landed) return false;
    return true;
  }

 private:
  std::vector<std::shared_ptr<PendingWrite>> writes_;
};

}  // namespace megamoe::sim
