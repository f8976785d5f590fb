#include "runtime/group/text_list.hpp"

#include <gtest/gtest.h>

namespace megamoe {
namespace {

TEST(TextList, ComesBackAsItWas) {
  const std::vector<std::string> texts{"", "a", std::string("\0\n=", 3), std::string(70'000, 'x')};
  EXPECT_EQ(split_texts(join_texts(texts)), texts);
  EXPECT_TRUE(split_texts(join_texts({})).empty());
}

TEST(TextList, ATruncatedOrLyingWholeGivesNothing) {
  const std::string whole = join_texts({"abc", "de"});
  constexpr std::size_t kFirstText = 8 + 3;  // so many bytes are a whole of their own
  for (std::size_t bytes = 1; bytes < whole.size(); ++bytes) {
    const auto texts = split_texts(whole.substr(0, bytes));
    EXPECT_EQ(texts.size(), bytes == kFirstText ? 1U : 0U) << bytes;
  }
  EXPECT_TRUE(split_texts(std::string(8, '\xFF') + "abc").empty());
}

}  // namespace
}  // namespace megamoe
