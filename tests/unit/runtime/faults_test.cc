#include "runtime/faults.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace megamoe {
namespace {

FaultRecord record(const Abort& abort, const Wait& wait) {
  return {.abort = abort, .rank = 3, .worker = 1, .wait = wait, .observation = {3, 4}};
}

constexpr Abort kOwnExpiry{AbortReason::kExpired, 3};

TEST(Faults, AnExpiryNamesTheWaitTheBoundAndTheValues) {
  EXPECT_EQ(
      fault_sentence(record(kOwnExpiry, {WaitFor::kRank, 1, 2}), {2}, 200),
      "rank 3, worker 1: gave up after 200 ms without progress, waiting for rank 2 at barrier "
      "1 (seen 3, wanted 4); rank 2 was not there");
  EXPECT_EQ(fault_sentence(record(kOwnExpiry, {WaitFor::kRows, 42, 3}), {2}, 200),
            "rank 3, worker 1: gave up after 200 ms without progress, waiting for the rows of pool "
            "block 42 (seen 3, wanted 4)");
}

// A worker at its own rank's gate does not know who is missing; the arrivals do.
TEST(Faults, AnExpiryAtAGateNamesTheRanksThatDidNotCome) {
  EXPECT_EQ(fault_sentence(record(kOwnExpiry, {WaitFor::kGate, 2, 3}), {0, 1, 5}, 10),
            "rank 3, worker 1: gave up after 10 ms without progress, waiting for its rank to pass "
            "barrier 2 (seen 3, wanted 4); ranks 0, 1 and 5 were not there");
}

TEST(Faults, WhoObeysAnotherSaysWhose) {
  const Wait wait{WaitFor::kLinear1, 7, 3};
  EXPECT_EQ(fault_sentence(record({AbortReason::kDied, 2}, wait), {}, 200),
            "rank 3, worker 1: left while waiting for linear 1 of pool block 7 (seen 3, wanted 4): "
            "rank 2 died");
  EXPECT_EQ(fault_sentence(record({AbortReason::kExpired, 0}, wait), {}, 200),
            "rank 3, worker 1: left while waiting for linear 1 of pool block 7 (seen 3, wanted 4): "
            "rank 0 gave up");
}

TEST(Faults, EveryWaitHasItsOwnWords) {
  std::set<std::string> sentences;
  for (std::uint32_t what = 0; what <= static_cast<std::uint32_t>(WaitFor::kPipeline); ++what)
    sentences.insert(fault_sentence(record(kOwnExpiry, {static_cast<WaitFor>(what), 1, 0}), {}, 1));
  EXPECT_EQ(sentences.size(), static_cast<std::size_t>(WaitFor::kPipeline) + 1);
}

TEST(Faults, RefusalsNameRankPlaceValueAndBound) {
  const Problem problem{.ranks = 2, .experts = 8, .capacity = 16};
  EXPECT_EQ(refusal_sentence({RefusalKind::kTooManyTokens, 1, 17, 0, 0}, problem),
            "num_tokens is 17 on rank 1; the layer was made for 0 to 16");
  EXPECT_EQ(refusal_sentence({RefusalKind::kExpertId, 1, 5, 2, 9}, problem),
            "topk_ids of rank 1, token 5, slot 2 is 9; the layer has experts 0 to 7, and ids below "
            "0 are masked");
  EXPECT_EQ(refusal_sentence({RefusalKind::kMissingExpert, 1, 0, 0, 2}, problem),
            "local expert 2 of rank 1 (expert 6) has no weights yet");
}

}  // namespace
}  // namespace megamoe
