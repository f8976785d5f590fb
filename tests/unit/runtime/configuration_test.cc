#include "runtime/configuration.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "megamoe/error.hpp"

namespace megamoe {
namespace {

std::string refusal_of(const std::vector<std::string>& texts) {
  try {
    require_same(texts, "the layer");
  } catch (const Error& error) {
    return error.what();
  }
  return "same";
}

Configuration with(int width, float limit) {
  Configuration c;
  c.add("width", width);
  c.add("limit", limit);
  c.add("name", std::string("a=b"));
  return c;
}

TEST(ConfigurationTest, IsAHashAndALineAField) {
  const std::string text = with(3, 0.1F).text();
  EXPECT_EQ(text.substr(text.find('\n')), "\nwidth=3\nlimit=0.100000001\nname=a=b\n");
}

// Ranks may be builds of different compilers: the hash is of the text and of nothing else.
TEST(ConfigurationTest, TheHashIsFnv1a) {
  Configuration c;
  EXPECT_EQ(c.hash(), 0xCBF29CE484222325U);
  c.add("a", 1);
  EXPECT_NE(c.hash(), with(3, 7).hash());
}

TEST(ConfigurationTest, TheFirstDifferenceIsNamedWithBothValuesAndRanks) {
  const std::string one = with(3, 7).text();
  EXPECT_EQ(refusal_of({one, one, one}), "same");
  EXPECT_EQ(refusal_of({one, one, with(4, 7).text()}),
            "ranks 0 and 2 disagree on width of the layer: 3 on rank 0, 4 on rank 2");
  EXPECT_EQ(refusal_of({one, with(3, 7.5F).text()}),
            "ranks 0 and 1 disagree on limit of the layer: 7 on rank 0, 7.5 on rank 1");
}

TEST(ConfigurationTest, FloatsThatDifferInTheLastBitDiffer) {
  EXPECT_NE(with(3, 1.702F).text(), with(3, std::nextafter(1.702F, 2.0F)).text());
}

TEST(ConfigurationTest, AFieldThatOneLacksIsNamed) {
  Configuration more = with(3, 7);
  more.add("extra", 1);
  EXPECT_EQ(refusal_of({with(3, 7).text(), more.text()}),
            "ranks 0 and 1 disagree on extra of the layer: missing on rank 0, 1 on rank 1");
}

}  // namespace
}  // namespace megamoe
