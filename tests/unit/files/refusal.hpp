#pragma once

#include <gtest/gtest.h>

#include <string>

#include "megamoe/error.hpp"

namespace megamoe::testing {

/// The sentence with which `work` is refused; fails the test if it is not refused, or not as a bad
/// input.
template <class Work>
std::string refusal(Work&& work) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_TRUE(error.code() == ErrorCode::kBadFile || error.code() == ErrorCode::kInvalidArgument)
        << error.what();
    return error.what();
  }
  ADD_FAILURE() << "was not refused";
  return {};
}

/// Each of `parts` must occur in the sentence.
template <class... Parts>
void expect_says(const std::string& said, const Parts&... parts) {
  for (const std::string& part : {std::string(parts)...})
    EXPECT_NE(said.find(part), std::string::npos) << "\"" << part << "\" is missing in: " << said;
}

}  // namespace megamoe::testing
