#pragma once

#include <cstddef>
#include <cstdint>

#include "machine/cuda/ptx.cuh"

// Rings of slots in shared memory between warps of one CTA. A slot is a struct with two mbarriers,
// `full` and `empty`; one address reaches its data and its barriers.
//
// These waits have no bound of their own: what fills or empties a slot is a warp of the same CTA or
// a copy from the device's own memory. A role that waits for anything else does it through
// wait_until(), and when that gives up it keeps filling its slots, without copies, so that every
// wait here ends too.
namespace megamoe {

MEGAMOE_DEVICE void wait_for_phase(std::uint32_t barrier, std::uint32_t parity) {
  while (!ptx::mbarrier_try_wait(barrier, parity)) {
  }
}

// Of a barrier at which other CTAs of the cluster arrive.
MEGAMOE_DEVICE void wait_for_phase_of_cluster(std::uint32_t barrier, std::uint32_t parity) {
  while (!ptx::mbarrier_try_wait_of_cluster(barrier, parity)) {
  }
}

// Which slot of a ring comes next, and the parity of its phase: one register, as several cursors
// live through a main loop. The ring's address is another, which all rings of a CTA share up to a
// constant.
template <class Slot, int kSlots>
class SlotCursor {
 public:
  MEGAMOE_DEVICE explicit SlotCursor(std::uint32_t first) : first_(first) {}

  MEGAMOE_DEVICE std::uint32_t index() const { return at_ >> 1; }
  MEGAMOE_DEVICE std::uint32_t slot() const { return first_ + index() * sizeof(Slot); }
  MEGAMOE_DEVICE std::uint32_t parity() const { return at_ & 1; }
  MEGAMOE_DEVICE void advance() {
    at_ += 2;
    if (at_ >= 2 * kSlots) at_ = (at_ & 1) ^ 1;
  }

 private:
  std::uint32_t first_;
  std::uint32_t at_ = 0;  // twice the slot, plus the parity
};

// One filler of the ring's slots. `kOfCluster`: readers are in other CTAs too.
template <class Slot, int kSlots, bool kOfCluster = false>
class Producer {
 public:
  MEGAMOE_DEVICE explicit Producer(std::uint32_t first) : at_(first) {}

  // The next slot, once everybody has released what it held. A new ring is all empty: the flipped
  // parity is that of a phase that never was.
  MEGAMOE_DEVICE std::uint32_t acquire() {
    const std::uint32_t slot = at_.slot();
    if constexpr (kOfCluster)
      wait_for_phase_of_cluster(slot + offsetof(Slot, empty), at_.parity() ^ 1);
    else
      wait_for_phase(slot + offsetof(Slot, empty), at_.parity() ^ 1);
    at_.advance();
    return slot;
  }
  // Which slot comes next.
  MEGAMOE_DEVICE std::uint32_t index() const { return at_.index(); }
  // Every slot is empty: nobody will arrive at one any more.
  MEGAMOE_DEVICE void drain() {
    for (int i = 0; i < kSlots; ++i)
      acquire();
  }
  // This filler's arrival; the slot is full when the bytes that it announced have landed too.
  static MEGAMOE_DEVICE void commit(std::uint32_t slot, std::uint32_t bytes) {
    ptx::mbarrier_arrive_expect(full_barrier(slot), bytes);
  }
  static MEGAMOE_DEVICE void commit(std::uint32_t slot) {
    ptx::mbarrier_arrive(full_barrier(slot));
  }
  static MEGAMOE_DEVICE std::uint32_t full_barrier(std::uint32_t slot) {
    return slot + static_cast<std::uint32_t>(offsetof(Slot, full));
  }

 private:
  SlotCursor<Slot, kSlots> at_;
};

// One reader; `release` is one arrival of those that the `empty` barrier counts.
template <class Slot, int kSlots>
class Consumer {
 public:
  MEGAMOE_DEVICE explicit Consumer(std::uint32_t first) : at_(first) {}

  MEGAMOE_DEVICE std::uint32_t wait() {
    const std::uint32_t slot = at_.slot();
    wait_for_phase(slot + offsetof(Slot, full), at_.parity());
    at_.advance();
    return slot;
  }
  // The two halves of wait(), for a reader that has no registers for a slot besides its cursor:
  // until it moves on, index() and parity() are those of the slot that it waited for.
  MEGAMOE_DEVICE void wait_in_place() const {
    wait_for_phase(at_.slot() + offsetof(Slot, full), at_.parity());
  }
  MEGAMOE_DEVICE void move_on() { at_.advance(); }
  // Where it stands, for a second ring of as many slots whose slots are used one for one with this
  // one's.
  MEGAMOE_DEVICE std::uint32_t index() const { return at_.index(); }
  MEGAMOE_DEVICE std::uint32_t parity() const { return at_.parity(); }
  static MEGAMOE_DEVICE void release(std::uint32_t slot, bool arrives) {
    ptx::mbarrier_arrive_if(arrives, slot + static_cast<std::uint32_t>(offsetof(Slot, empty)));
  }

 private:
  SlotCursor<Slot, kSlots> at_;
};

template <class Slot, int kSlots>
MEGAMOE_DEVICE void init_ring(std::uint32_t first, std::uint32_t fillers, std::uint32_t readers) {
  for (int i = 0; i < kSlots; ++i) {
    const std::uint32_t slot = first + i * static_cast<std::uint32_t>(sizeof(Slot));
    ptx::mbarrier_init(slot + offsetof(Slot, full), fillers);
    ptx::mbarrier_init(slot + offsetof(Slot, empty), readers);
  }
}

}  // namespace megamoe
