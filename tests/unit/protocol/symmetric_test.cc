#include "protocol/symmetric.hpp"

#include <gtest/gtest.h>

#include <array>
#include <random>

namespace megamoe {
namespace {

TEST(Carver, PlacesAreAlignedAndDoNotOverlap) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    Carver carve;
    std::uint64_t end = 0;
    for (int i = 0; i < 20; ++i) {
      const std::uint64_t count = random() % 100;
      const std::uint64_t alignment = std::uint64_t{8} << random() % 6;
      const Sym<std::uint64_t> place = carve.take<std::uint64_t>(count, alignment);
      EXPECT_EQ(place.offset % alignment, 0U);
      EXPECT_GE(place.offset, end);
      EXPECT_LT(place.offset, end + alignment);
      end = place.offset + count * sizeof(std::uint64_t);
      EXPECT_EQ(carve.size(), end);
    }
  }
}

TEST(Carver, TakesATypesOwnAlignment) {
  Carver carve;
  EXPECT_EQ(carve.take<char>(3).offset, 0U);
  EXPECT_EQ(carve.take<std::uint32_t>(1).offset, 4U);
  EXPECT_EQ(carve.take<char>(1).offset, 8U);
  EXPECT_EQ(carve.take<std::uint64_t>(1).offset, 16U);
  EXPECT_EQ(carve.take<std::uint64_t>(0).offset, 24U);
  EXPECT_EQ(carve.size(), 24U);
}

TEST(Carver, CountsPast32Bits) {
  Carver carve;
  carve.take<std::uint32_t>(3'000'000'000U);
  EXPECT_EQ(carve.take<std::byte>(1).offset, 12'000'000'000U);
}

TEST(Sym, AnElementIsAsFarAsItsIndex) {
  constexpr Sym<std::uint32_t> kPlace{100};
  EXPECT_EQ(kPlace.at(0).offset, 100U);
  EXPECT_EQ(kPlace.at(5'000'000'000U).offset, 20'000'000'100U);
}

TEST(Peers, TheSamePlaceOnEveryRank) {
  std::array<std::array<std::byte, 64>, 3> memory{};
  Peers peers;
  peers.rank = 1;
  peers.ranks = 3;
  for (std::size_t r = 0; r < 3; ++r)
    peers.base[r] = memory[r].data();
  const Sym<std::uint32_t> place{8};
  EXPECT_EQ(static_cast<void*>(peers.local(place)), &memory[1][8]);
  for (int r = 0; r < 3; ++r)
    EXPECT_EQ(static_cast<void*>(peers.on(r, place).raw()),
              &memory[static_cast<std::size_t>(r)][8]);
  EXPECT_EQ(static_cast<void*>(peers.on(2, place.at(3)).raw()), &memory[2][20]);
  EXPECT_EQ(peers.on(2, place).at(3).raw(), peers.on(2, place.at(3)).raw());
}

}  // namespace
}  // namespace megamoe
