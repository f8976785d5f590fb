#pragma once

#include <cstdint>
#include <vector>

#include "protocol/call.hpp"
#include "sim/rank_memory.hpp"
#include "sim/scenario.hpp"

namespace megamoe::sim {

/// What a rank's host does around its calls: writes the input into symmetric memory, says how many
/// tokens there are, and looks at the results.
class RankHost {
 public:
  RankHost(const Scenario& scenario, const RankMemory& memory, int rank);
  RankHost(RankHost&&) = default;

  /// The rank's next call. Overwrites the input of the one before, and poisons the output.
  const Call& begin(int number);
  const Call& call() const { return call_; }
  int number() const { return number_; }
  std::uint64_t first_epoch() const { return first_epoch_; }
  const RankInput& input() const;
  const std::vector<Bfloat16>& output() const { return output_; }

 private:
  void write_input();

  const Scenario* scenario_;
  Call call_;
  int number_ = -1;
  std::int32_t num_tokens_ = 0;
  std::uint64_t first_epoch_ = 0;
  std::vector<Bfloat16> output_;
};

}  // namespace megamoe::sim
