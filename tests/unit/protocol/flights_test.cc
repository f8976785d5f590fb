#include "protocol/flights.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <random>

namespace megamoe {
namespace {

template <int kMost>
void expect_a_queue() {
  std::mt19937 random(1);
  Flights<kMost> flights;
  std::deque<Flight> expected;
  int next = 0;
  for (int step = 0; step < 1000; ++step) {
    ASSERT_EQ(flights.is_empty(), expected.empty());
    ASSERT_EQ(flights.is_full(), expected.size() == kMost);
    const bool takes_off = expected.empty() || (random() % 2 == 0 && expected.size() < kMost);
    if (takes_off) {
      const Flight flight{next, static_cast<std::uint32_t>(7 * next)};
      ++next;
      flights.take_off(flight);
      expected.push_back(flight);
      continue;
    }
    const Flight landed = flights.land();
    ASSERT_EQ(landed.place, expected.front().place);
    ASSERT_EQ(landed.rows, expected.front().rows);
    expected.pop_front();
  }
}

TEST(Flights, LandInTheOrderInWhichTheyTookOff) {
  expect_a_queue<1>();
  expect_a_queue<2>();
  expect_a_queue<4>();
  expect_a_queue<7>();
}

}  // namespace
}  // namespace megamoe
