#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/math.hpp"
#include "megamoe/problem.hpp"

namespace megamoe {

/// A place in symmetric memory: the same offset on every rank. Not an address until someone says
/// whose copy.
template <class T>
struct Sym {
  std::uint64_t offset = 0;

  constexpr Sym at(std::uint64_t index) const { return {offset + index * sizeof(T)}; }
};

/// An address in some rank's copy, possibly another's. Only a machine's verbs may unwrap it.
template <class T>
class Remote {
 public:
  constexpr explicit Remote(T* address) : address_(address) {}

  constexpr T* raw() const { return address_; }
  constexpr Remote at(std::uint64_t index) const { return Remote(address_ + index); }

 private:
  T* address_;
};

/// What one rank can reach: every rank's base address as mapped here, its own included. Trivially
/// copyable; valid as long as the memory that it was made from.
struct Peers {
  std::byte* base[kMaxRanks] = {};
  int rank = 0;
  int ranks = 1;

  template <class T>
  constexpr T* local(Sym<T> place) const {
    return reinterpret_cast<T*>(base[rank] + place.offset);
  }
  template <class T>
  constexpr Remote<T> on(int peer, Sym<T> place) const {
    return Remote<T>(reinterpret_cast<T*>(base[peer] + place.offset));
  }
};
static_assert(std::is_trivially_copyable_v<Peers>);

/// Hands out places one behind the other: the only sum of offsets in the project.
class Carver {
 public:
  template <class T>
  constexpr Sym<T> take(std::uint64_t count, std::uint64_t alignment = alignof(T)) {
    end_ = align_up(end_, alignment);
    const Sym<T> place{end_};
    end_ += count * sizeof(T);
    return place;
  }
  constexpr std::uint64_t size() const { return end_; }

 private:
  std::uint64_t end_ = 0;
};

}  // namespace megamoe
