// A call at the largest capacity there is: combine buffer and pool of more than 2^32 bytes each.
// Its tokens repeat a few, so that every row of the output is known from a small call, bit for bit.
#include <cstring>

#include "device_layer.hpp"
#include "gpu_test.hpp"
#include "whole_reference.hpp"

namespace megamoe::test {
namespace {

class LargeCall : public GpuTest, public testing::WithParamInterface<sm90::Operands> {
 protected:
  static constexpr int kDistinct = 64;

  static Problem problem(int capacity) {
    return {.experts = 8, .topk = 8, .hidden = 4256, .intermediate = 96, .capacity = capacity};
  }

  // Copies its first `done` rows of `row_bytes` behind them, over and over, up to `all` rows.
  static void repeat(std::byte* rows, std::size_t row_bytes, std::size_t done, std::size_t all) {
    for (std::size_t next; done < all; done = next) {
      next = std::min(all, 2 * done);
      expect_cuda(
          cudaMemcpy(
              rows + done * row_bytes, rows, (next - done) * row_bytes, cudaMemcpyDeviceToDevice),
          "repeating rows");
    }
  }
};

TEST_P(LargeCall, GivesWhatASmallOneGives) {
  const RandomWeights weights = random_weights(problem(kDistinct), 5, 61);
  const RandomInput input = random_input(problem(kDistinct), kDistinct, 62);
  DeviceLayer small(problem(kDistinct), weights, {.operands = GetParam()});
  small.set_input(0, input);
  small.forward(device_workers());
  const std::vector<Bfloat16> wanted = small.output(0);

  DeviceLayer large(problem(kMaxCapacity), weights, {.operands = GetParam(), .block_m = 160});
  const Workspace& w = large.workspace();
  EXPECT_GT(w.row_source.offset - w.combine.offset, std::uint64_t{1} << 32);
  if (GetParam() == sm90::Operands::kBfloat16) {
    EXPECT_GT(w.linear1_scales.offset - w.linear1_rows.offset, std::uint64_t{1} << 32);
  }
  large.set_input(0, input);
  const auto fill = [&](auto place, std::size_t row_bytes) {
    repeat(large.symmetric(0) + place.offset, row_bytes, kDistinct, kMaxCapacity);
  };
  const auto hidden = static_cast<std::size_t>(large.problem().hidden);
  fill(w.tokens, hidden);
  fill(w.token_scales, hidden / 32);
  fill(w.topk_ids, 8 * sizeof(std::int64_t));
  fill(w.topk_weights, 8 * sizeof(float));
  const std::int32_t tokens = kMaxCapacity;
  expect_cuda(cudaMemcpy(large.num_tokens(0), &tokens, sizeof tokens, cudaMemcpyHostToDevice),
              "the token count");
  large.poison();
  large.forward(device_workers());
  const std::size_t cells = kDistinct * hidden;
  int wrong = 0;
  for (int part = 0; part < kMaxCapacity / kDistinct; ++part) {
    const std::vector<Bfloat16> y = download<Bfloat16>(
        large.args(0).call.output + static_cast<std::size_t>(part) * cells, cells);
    wrong += !same_bits(y, wanted);
  }
  EXPECT_EQ(wrong, 0) << "of " << kMaxCapacity / kDistinct << " repetitions";
  EXPECT_TRUE(large.counters_are_zero(0));
  EXPECT_TRUE(large.is_intact());
}

std::string name_of(const testing::TestParamInfo<sm90::Operands>& info) {
  return info.param == sm90::Operands::kFloat8 ? "fp8" : "bf16";
}

INSTANTIATE_TEST_SUITE_P(Hopper,
                         LargeCall,
                         testing::Values(sm90::Operands::kFloat8, sm90::Operands::kBfloat16),
                         name_of);

}  // namespace
}  // namespace megamoe::test
