#pragma once

#include <memory>
#include <vector>

#include "megamoe/layer_options.hpp"
#include "protocol/symmetric.hpp"
#include "protocol/workspace.hpp"
#include "runtime/group/link.hpp"
#include "runtime/memory/memory_kind.hpp"

namespace megamoe {

inline constexpr int kPoison = 0xFF;  ///< every byte of it: NaN in each of our formats

/// The symmetric memory of a layer: every rank's segment, as mapped here. Move-only.
class SymmetricMemory {
 public:
  struct Request {
    std::uint64_t bytes = 0;         ///< of a rank
    std::uint64_t zeroed_bytes = 0;  ///< at its start, that must be zero
    bool poison = false;             ///< the rest becomes 0xFF
    AdoptedMemory adopted;
    std::uint64_t timeout_ms = 0;
  };

  /// Collective. The same Error on every rank when some rank can't get its own.
  static SymmetricMemory create(Link& link, MemoryKind& kind, const Request& request);

  /// Valid while *this lives.
  const Peers& peers() const { return peers_; }
  std::uint64_t bytes() const { return segments_.front()->bytes(); }

 private:
  std::vector<std::shared_ptr<Segment>> segments_;  // by rank
  Peers peers_;
};

/// Throws Error(kInvalidArgument) unless the caller's memory has a usable base for each rank and
/// the bytes that are needed.
void validate(const AdoptedMemory& memory, int ranks, std::uint64_t needed_bytes);

}  // namespace megamoe
