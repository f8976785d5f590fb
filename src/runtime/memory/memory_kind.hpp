#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "protocol/counters.hpp"
#include "protocol/fault.hpp"
#include "runtime/group/link.hpp"
#include "runtime/memory/segment.hpp"

namespace megamoe {

/// Where a machine's symmetric memory lies: how it comes to be, and how the host reaches it before,
/// between and beside calls. Everything that the host does with symmetric memory goes through here,
/// by one implementation a kind; addresses are the machine's.
class MemoryKind {
 public:
  virtual ~MemoryKind() = default;

  /// Throws Error(kRunFailed) naming needed and available bytes unless `ranks` ranks can each get
  /// so many.
  virtual void require_room(int ranks, std::uint64_t bytes) const = 0;
  /// Whether the machine can use an address of the caller's as it is.
  virtual bool holds(const void* address) const = 0;
  /// Memory of this rank's alone, for the machine to write.
  virtual std::shared_ptr<Segment> own_buffer(std::uint64_t bytes) = 0;

  /// This rank's part of new symmetric memory, zero.
  virtual std::shared_ptr<Segment> allocate(const Link& link, std::uint64_t bytes) = 0;
  /// Collective: every rank's part as reached from here, by rank.
  virtual std::vector<std::shared_ptr<Segment>> share(Link& link,
                                                      const Meeting& meeting,
                                                      std::shared_ptr<Segment> mine) = 0;

  /// Between calls; done when they return.
  virtual void read(void* to, const void* from, std::uint64_t bytes) = 0;
  virtual void write(void* to, const void* from, std::uint64_t bytes) = 0;
  virtual void fill(void* to, int byte, std::uint64_t bytes) = 0;

  /// Words that a call, or another thread, may be changing meanwhile: acquire loads, and a release
  /// store unless the word is set already.
  virtual std::uint32_t load(const std::uint32_t* word) = 0;
  virtual std::uint64_t load(const std::uint64_t* word) = 0;
  virtual void set_if_zero(std::uint32_t* word, std::uint32_t value) = 0;
  /// Makes `words` words zero while peers may set some of them.
  virtual void zero(std::uint32_t* first, std::uint64_t words) = 0;

  template <class AnyCounter>
  typename AnyCounter::Value observe(const AnyCounter* counter) {
    return load(&counter->value);
  }
  /// Sets an abort word from outside a call, unless it is set: the first cause stays.
  void set_abort(AbortWord* word, const Abort& abort) { set_if_zero(&word->value, abort.word()); }
  template <class T>
  T copy_of(const T* from) {
    T value;
    read(&value, from, sizeof value);
    return value;
  }
};

}  // namespace megamoe
