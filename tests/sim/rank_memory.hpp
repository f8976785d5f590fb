#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "protocol/symmetric.hpp"
#include "protocol/workspace.hpp"

namespace megamoe::sim {

/// The symmetric memory of all ranks of one process: zero where the protocol asks for zero, poison
/// elsewhere.
class RankMemory {
 public:
  static constexpr int kPoison = 0xA5;

  RankMemory(const Workspace& workspace, int ranks) : bytes_(workspace.bytes) {
    for (int rank = 0; rank < ranks; ++rank) {
      auto* base = static_cast<std::byte*>(::operator new(bytes_, kAlignment));
      std::memset(base, 0, workspace.zeroed_bytes);
      std::memset(base + workspace.zeroed_bytes, kPoison, bytes_ - workspace.zeroed_bytes);
      bases_.emplace_back(base);
    }
  }

  Peers peers(int rank) const {
    Peers p;
    p.rank = rank;
    p.ranks = static_cast<int>(bases_.size());
    for (std::size_t r = 0; r < bases_.size(); ++r)
      p.base[r] = bases_[r].get();
    return p;
  }

  /// The rank whose memory holds all of the bytes; -1 if none does.
  int rank_of(const void* address, std::size_t bytes) const {
    const auto* first = static_cast<const std::byte*>(address);
    for (std::size_t r = 0; r < bases_.size(); ++r) {
      const std::byte* base = bases_[r].get();
      if (first >= base && first + bytes <= base + bytes_) return static_cast<int>(r);
    }
    return -1;
  }

 private:
  static constexpr std::align_val_t kAlignment{4096};
  struct Deleter {
    void operator()(std::byte* base) const { ::operator delete(base, kAlignment); }
  };

  std::size_t bytes_;
  std::vector<std::unique_ptr<std::byte, Deleter>> bases_;
};

}  // namespace megamoe::sim
