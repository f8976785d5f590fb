#include "runtime/memory/host_memory.hpp"

#include <atomic>
#include <cstring>
#include <utility>

#include "runtime/memory/available.hpp"

namespace megamoe {
namespace {

// A reference to const can't be loaded atomically.
template <class Word>
std::atomic_ref<Word> atomic(const Word* word) {
  return std::atomic_ref<Word>(*const_cast<Word*>(word));
}

}  // namespace

void HostMemory::require_room(int ranks, std::uint64_t bytes) const {
  require_memory(ranks, bytes);
}

std::shared_ptr<Segment> HostMemory::own_buffer(std::uint64_t bytes) {
  return Segment::anonymous(bytes);
}

std::shared_ptr<Segment> HostMemory::allocate(const Link& link, std::uint64_t bytes) {
  return link.allocate(bytes);
}

std::vector<std::shared_ptr<Segment>> HostMemory::share(Link& link,
                                                        const Meeting& meeting,
                                                        std::shared_ptr<Segment> mine) {
  return link.share(meeting, std::move(mine));
}

// None of nothing: an empty span's address may be null, which these functions don't take.
void HostMemory::read(void* to, const void* from, std::uint64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

void HostMemory::write(void* to, const void* from, std::uint64_t bytes) {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

void HostMemory::fill(void* to, int byte, std::uint64_t bytes) {
  if (bytes > 0) std::memset(to, byte, bytes);
}

std::uint32_t HostMemory::load(const std::uint32_t* word) {
  return atomic(word).load(std::memory_order_acquire);
}

std::uint64_t HostMemory::load(const std::uint64_t* word) {
  return atomic(word).load(std::memory_order_acquire);
}

void HostMemory::set_if_zero(std::uint32_t* word, std::uint32_t value) {
  std::uint32_t none = 0;
  atomic(word).compare_exchange_strong(
      none, value, std::memory_order_release, std::memory_order_relaxed);
}

void HostMemory::zero(std::uint32_t* first, std::uint64_t words) {
  for (std::uint64_t i = 0; i < words; ++i)
    atomic(first + i).store(0, std::memory_order_relaxed);
}

}  // namespace megamoe
