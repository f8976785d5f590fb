#pragma once

#include "runtime/memory/memory_kind.hpp"

namespace megamoe {

/// Memory of the computer: of this process, or shared between rank processes, as the link has it.
class HostMemory : public MemoryKind {
 public:
  void require_room(int ranks, std::uint64_t bytes) const override;
  bool holds(const void*) const override { return true; }
  std::shared_ptr<Segment> own_buffer(std::uint64_t bytes) override;

  std::shared_ptr<Segment> allocate(const Link& link, std::uint64_t bytes) override;
  std::vector<std::shared_ptr<Segment>> share(Link& link,
                                              const Meeting& meeting,
                                              std::shared_ptr<Segment> mine) override;

  void read(void* to, const void* from, std::uint64_t bytes) override;
  void write(void* to, const void* from, std::uint64_t bytes) override;
  void fill(void* to, int byte, std::uint64_t bytes) override;
  std::uint32_t load(const std::uint32_t* word) override;
  std::uint64_t load(const std::uint64_t* word) override;
  void set_if_zero(std::uint32_t* word, std::uint32_t value) override;
  void zero(std::uint32_t* first, std::uint64_t words) override;
};

}  // namespace megamoe
