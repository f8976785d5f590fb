#pragma once

#include <cstddef>
#include <vector>

namespace megamoe::test {

/// Rows by expert, as schedules and waves ask for them.
struct RowsOf {
  const std::vector<int>* rows;
  constexpr int operator()(int expert) const { return (*rows)[static_cast<std::size_t>(expert)]; }
};

}  // namespace megamoe::test
