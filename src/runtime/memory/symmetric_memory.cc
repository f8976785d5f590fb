#include "runtime/memory/symmetric_memory.hpp"

#include "base/check.hpp"
#include "runtime/group/agree.hpp"

namespace megamoe {
namespace {

constexpr std::uintptr_t kPage = 4096;

std::shared_ptr<Segment> own_segment(Link& link,
                                     MemoryKind& kind,
                                     const SymmetricMemory::Request& request) {
  if (request.adopted.bases.empty()) return kind.allocate(link, request.bytes);
  void* const base = request.adopted.bases[static_cast<std::size_t>(link.rank())];
  require(kind.holds(base),
          ErrorCode::kInvalidArgument,
          "memory.bases of rank ",
          link.rank(),
          " is ",
          base,
          ", which the rank's machine can't use: it must lie on its card");
  return Segment::adopted(base, request.bytes);
}

void prepare(const Segment& segment, MemoryKind& kind, const SymmetricMemory::Request& request) {
  if (!request.adopted.bases.empty()) kind.fill(segment.base(), 0, request.zeroed_bytes);
  if (request.poison)
    kind.fill(
        segment.base() + request.zeroed_bytes, kPoison, segment.bytes() - request.zeroed_bytes);
}

}  // namespace

SymmetricMemory SymmetricMemory::create(Link& link, MemoryKind& kind, const Request& request) {
  const bool is_adopted = !request.adopted.bases.empty();
  SymmetricMemory memory;
  std::shared_ptr<Segment> own;
  agree(link, {"the allocation of symmetric memory", request.timeout_ms}, [&] {
    own = own_segment(link, kind, request);
    prepare(*own, kind, request);
    return std::string();
  });
  if (!is_adopted) {
    memory.segments_ =
        kind.share(link, {"the sharing of symmetric memory", request.timeout_ms}, own);
  } else {
    for (void* base : request.adopted.bases)
      memory.segments_.push_back(Segment::adopted(base, request.bytes));
  }
  // Nobody may write into a peer's memory before that peer has it ready, which the agreement above
  // says; nor close what a peer still has to map, which this one says.
  link.gather({"the first use of symmetric memory", request.timeout_ms}, "");
  own->close_descriptor();
  memory.peers_.rank = link.rank();
  memory.peers_.ranks = link.ranks();
  for (int rank = 0; rank < link.ranks(); ++rank)
    memory.peers_.base[rank] = memory.segments_[static_cast<std::size_t>(rank)]->base();
  return memory;
}

void validate(const AdoptedMemory& memory, int ranks, std::uint64_t needed_bytes) {
  if (memory.bases.empty()) return;
  require(memory.bases.size() == static_cast<std::size_t>(ranks),
          ErrorCode::kInvalidArgument,
          "memory.bases has ",
          memory.bases.size(),
          " addresses; the group has ",
          ranks,
          " ranks");
  for (std::size_t rank = 0; rank < memory.bases.size(); ++rank) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory.bases[rank]);
    require(address != 0 && address % kPage == 0,
            ErrorCode::kInvalidArgument,
            "memory.bases of rank ",
            rank,
            " is ",
            memory.bases[rank],
            "; it must be a multiple of ",
            kPage,
            " and not null");
  }
  require(memory.bytes >= needed_bytes,
          ErrorCode::kInvalidArgument,
          "memory.bytes is ",
          memory.bytes,
          "; this layer needs ",
          needed_bytes,
          " of each rank");
}

}  // namespace megamoe
