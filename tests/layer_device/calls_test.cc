// Calls on streams of the caller's: asynchronous, back to back, captured and replayed, with counts
// from the host or from the card, and beside other kernels.
#include <array>

#include "card.hpp"

namespace megamoe::test {
namespace {

constexpr int kCapacity = 64;

Problem small_problem(int ranks) {
  return {.ranks = ranks,
          .experts = 8,
          .topk = 3,
          .hidden = 256,
          .intermediate = 128,
          .capacity = kCapacity};
}

std::size_t output_bytes(const Problem& p) {
  return static_cast<std::size_t>(p.capacity) * static_cast<std::size_t>(p.hidden) * 2;
}

class CallsOnCard : public OnCard {
 protected:
  // Bodies of ranks; a rank's failure is the test's.
  static void on_ranks(int ranks, const std::function<void(Group&)>& body) {
    const LaunchResult result = launch_threads(ranks, [&](Group group) {
      body(group);
      return std::string();
    });
    if (!result.is_good()) FAIL() << result.explain();
  }
};

// What forward() gives, enqueue() and wait() give, and the report says the same.
TEST_P(CallsOnCard, OnAStreamGiveWhatForwardGives) {
  const Trial trial(small_problem(2));
  on_ranks(2, [&](Group& group) {
    Layer layer(group, trial.problem(), card_options());
    trial.set_experts(layer, group.rank());
    const std::string expected = trial.forward(layer, 0, 40);
    const CardStream stream;
    const CardMemory y(output_bytes(trial.problem()));
    layer.enqueue({.stream = stream.get(), .num_tokens = 40, .output = y.as<std::uint16_t>()});
    const CallReport report = layer.wait(stream.get());
    EXPECT_TRUE(rows_of(y, 40, trial.problem().hidden) == expected);
    EXPECT_EQ(report.expert_rows.size(), 4U);
    EXPECT_GT(report.bytes_pulled, 0U);
    EXPECT_GT(report.times.total, 0.0);
    EXPECT_TRUE(y.is_whole());
  });
}

// Several layers back to back without a look in between, fifty calls deep.
TEST_P(CallsOnCard, OfSiblingsFollowEachOtherWithoutALook) {
  const Trial first(small_problem(2), 1);
  const Trial second(small_problem(2), 2);
  on_ranks(2, [&](Group& group) {
    Layer layer(group, first.problem(), card_options());
    LayerOptions unpoisoned = card_options();
    unpoisoned.poison = false;
    Layer quick(group, first.problem(), unpoisoned);
    Layer other = quick.sibling();
    first.set_experts(layer, group.rank());
    first.set_experts(quick, group.rank());
    second.set_experts(other, group.rank());
    const std::string expected = first.forward(layer, 0, 33);
    second.set_experts(layer, group.rank());
    const std::string expected_other = first.forward(layer, 0, 33);
    first.set_tokens(quick, 0, 33);
    const CardStream stream;
    const CardMemory y(output_bytes(first.problem()));
    const CardMemory z(output_bytes(first.problem()));
    for (int call = 0; call < 50; ++call) {
      quick.enqueue({.stream = stream.get(), .num_tokens = 33, .output = y.as<std::uint16_t>()});
      other.enqueue({.stream = stream.get(), .num_tokens = 33, .output = z.as<std::uint16_t>()});
    }
    static_cast<void>(other.wait(stream.get()));
    EXPECT_TRUE(rows_of(y, 33, 256) == expected);
    EXPECT_TRUE(rows_of(z, 33, 256) == expected_other);
  });
}

// A graph is captured once and finds other tokens and counts at each replay, none included.
TEST_P(CallsOnCard, InAGraphTakeNewCountsAtEveryReplay) {
  const Trial trial(small_problem(2));
  on_ranks(2, [&](Group& group) {
    LayerOptions options = card_options();
    options.poison = false;
    Layer layer(group, trial.problem(), options);
    trial.set_experts(layer, group.rank());
    const CardStream stream;
    const CardMemory y(output_bytes(trial.problem()));
    const CardMemory count(sizeof(std::int32_t));
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t replay = nullptr;
    expect_cuda(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal), "capture");
    layer.enqueue({.stream = stream.get(),
                   .num_tokens_on_device = count.as<std::int32_t>(),
                   .output = y.as<std::uint16_t>()});
    expect_cuda(cudaStreamEndCapture(stream.get(), &graph), "capture");
    expect_cuda(cudaGraphInstantiate(&replay, graph, 0), "cudaGraphInstantiate");
    for (const std::int32_t tokens : {5, 0, kCapacity, 1, 17}) {
      SCOPED_TRACE(tokens);
      const std::int32_t mine = group.rank() == 0 ? tokens : kCapacity - tokens;
      const std::string expected = trial.forward(layer, 3, mine);
      expect_cuda(cudaMemcpy(count.as(), &mine, sizeof mine, cudaMemcpyHostToDevice), "a count");
      expect_cuda(cudaGraphLaunch(replay, stream.get()), "cudaGraphLaunch");
      static_cast<void>(layer.wait(stream.get()));
      EXPECT_TRUE(rows_of(y, mine, trial.problem().hidden) == expected);
    }
    group.gather("");
    cudaGraphExecDestroy(replay);
    cudaGraphDestroy(graph);
    EXPECT_TRUE(y.is_whole());
  });
}

// What the card finds wrong is told at the next look, on every rank, and nothing hangs or is
// written: a count over the capacity, or under zero, read from the card's memory.
TEST_P(CallsOnCard, WithACountThatIsOutOfBoundsAreRefusedOnEveryRank) {
  const Trial trial(small_problem(2));
  for (const std::int32_t bad : {kCapacity + 1, -1, 1 << 30})
    on_ranks(2, [&](Group& group) {
      SCOPED_TRACE(bad);
      LayerOptions options = card_options();
      Layer layer(group, trial.problem(), options);
      trial.set_experts(layer, group.rank());
      const std::string expected = trial.forward(layer, 0, 7);
      const CardStream stream;
      const CardMemory y(output_bytes(trial.problem()));
      const CardMemory count(sizeof bad);
      const std::int32_t mine = group.rank() == 1 ? bad : 7;
      expect_cuda(cudaMemcpy(count.as(), &mine, sizeof mine, cudaMemcpyHostToDevice), "a count");
      layer.enqueue({.stream = stream.get(),
                     .num_tokens_on_device = count.as<std::int32_t>(),
                     .output = y.as<std::uint16_t>()});
      EXPECT_EQ(thrown_by([&] { layer.wait(stream.get()); }),
                "invalid argument: num_tokens is " + std::to_string(bad) +
                    " on rank 1; the layer was made for 0 to 64");
      EXPECT_EQ(y.bytes(output_bytes(trial.problem())).find_first_not_of('\xA5'),
                std::string::npos);
      EXPECT_TRUE(trial.forward(layer, 0, 7) == expected) << "the next call may come at once";
    });
}

// What the host finds wrong on one rank is refused on all, and nothing hangs.
TEST_P(CallsOnCard, ThatTheHostRefusesAreRefusedOnEveryRank) {
  const Trial trial(small_problem(2));
  on_ranks(2, [&](Group& group) {
    Layer layer(group, trial.problem(), card_options());
    EXPECT_NE(thrown_by([&] { layer.forward({}); }).find("has no weights yet"), std::string::npos);
    trial.set_experts(layer, group.rank());
    const std::string expected = trial.forward(layer, 0, 7);
    const CardStream stream;
    const CardMemory y(output_bytes(trial.problem()));
    const auto refused = [&](const StreamCall& bad) {
      StreamCall call{.stream = stream.get(), .num_tokens = 7, .output = y.as<std::uint16_t>()};
      if (group.rank() == 1) call = bad;
      call.stream = stream.get();
      return thrown_by([&] {
        layer.enqueue(call);
        layer.wait(stream.get());
      });
    };
    std::vector<std::uint16_t> host(256 * 7);
    EXPECT_NE(
        refused({.num_tokens = 7, .output = y.as<std::uint16_t>() + 1}).find("multiple of 16"),
        std::string::npos);
    EXPECT_NE(refused({.num_tokens = 7}).find("not null"), std::string::npos);
    alignas(16) static std::uint16_t on_host[256 * 7];
    EXPECT_NE(refused({.num_tokens = 7, .output = on_host}).find("machine can't write"),
              std::string::npos);
    EXPECT_NE(refused({.num_tokens = 65, .output = y.as<std::uint16_t>()}).find("num_tokens is 65"),
              std::string::npos);
    EXPECT_TRUE(trial.forward(layer, 0, 7) == expected);
  });
}

// Ids past the last expert are masked, counted and told.
TEST_P(CallsOnCard, MaskAndCountIdsPastTheLastExpert) {
  const Trial trial(small_problem(2));
  on_ranks(2, [&](Group& group) {
    Layer layer(group, trial.problem(), card_options());
    trial.set_experts(layer, group.rank());
    std::vector<std::int64_t> ids(3 * 10);
    std::vector<float> weights(ids.size(), 0.25F);
    for (std::size_t i = 0; i < ids.size(); ++i)
      ids[i] = static_cast<std::int64_t>((5 * i + 1) % 8);
    const CardStream stream;
    const CardMemory y(output_bytes(trial.problem()));
    const auto run = [&](std::int64_t odd) {
      ids[4] = odd;
      ids[29] = odd;
      trial.set_tokens(layer, 0, 10);
      layer.set_routing(0, 10, ids.data(), weights.data());
      layer.enqueue({.stream = stream.get(), .num_tokens = 10, .output = y.as<std::uint16_t>()});
      return layer.wait(stream.get());
    };
    EXPECT_EQ(run(-1).masked_ids.count, 0U);
    const std::string masked = rows_of(y, 10, 256);
    for (const std::int64_t bad : {std::int64_t{8}, std::int64_t{1} << 40}) {
      const CallReport report = run(bad);
      EXPECT_EQ(report.masked_ids.count, 2U);
      const bool is_one = report.masked_ids.token == 1 && report.masked_ids.slot == 1;
      const bool is_other = report.masked_ids.token == 9 && report.masked_ids.slot == 2;
      EXPECT_TRUE(is_one || is_other);
      EXPECT_TRUE(rows_of(y, 10, 256) == masked);
    }
    EXPECT_EQ(run(3).masked_ids.count, 0U) << "told once";
  });
}

// Ranks that share a card can't share CUDA's default stream; a card of one's own can use it.
TEST_P(CallsOnCard, OnTheDefaultStreamNeedACardOfTheirOwn) {
  const Trial trial(small_problem(1));
  on_ranks(1, [&](Group& group) {
    Layer layer(group, trial.problem(), card_options());
    trial.set_experts(layer, 0);
    const std::string expected = trial.forward(layer, 0, 20);
    const CardMemory y(output_bytes(trial.problem()));
    layer.enqueue({.num_tokens = 20, .output = y.as<std::uint16_t>()});
    static_cast<void>(layer.wait(nullptr));
    EXPECT_TRUE(rows_of(y, 20, 256) == expected);
  });
  on_ranks(2, [&](Group& group) {
    const Problem problem = trial.problem_of(2);
    Layer layer(group, problem, card_options());
    EXPECT_NE(thrown_by([&] { layer.wait(nullptr); }).find("need a stream each"),
              std::string::npos);
  });
}

INSTANTIATE_TEST_SUITE_P(Machines,
                         CallsOnCard,
                         testing::Values(kHopper, kEmulatedBlackwell),
                         name_of);

}  // namespace
}  // namespace megamoe::test
