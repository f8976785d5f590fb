#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include "conformance/verbs.hpp"

namespace megamoe::conformance {
namespace {

template <class F>
class MemoryVerbs : public Verbs<F> {};
TYPED_TEST_SUITE(MemoryVerbs, Machines);

TYPED_TEST(MemoryVerbs, EveryClaimGetsAValueOfItsOwn) {
  using M = typename TypeParam::M;
  constexpr std::uint64_t kStep = (std::uint64_t{1} << 33) + 1;  // both halves of 64 bits
  this->repeat([&](TypeParam& machine) {
    std::mutex mutex;
    std::vector<std::uint64_t> values;
    machine.run({.ranks = {1}, .workers = 3}, [&](M& m, const Call& call) {
      for (int i = 0; i < 10; ++i) {
        const std::uint64_t old = m.claim(call.local(call.workspace.sent), kStep);
        const std::lock_guard lock(mutex);
        values.push_back(old);
      }
    });
    std::sort(values.begin(), values.end());
    for (std::size_t i = 0; i < values.size(); ++i)
      EXPECT_EQ(values[i], i * kStep);
    EXPECT_EQ(values.size(), static_cast<std::size_t>(30 * M::kLanes));
    const Call& call = machine.call(1);
    EXPECT_EQ(call.local(call.workspace.sent)->value, values.size() * kStep);
  });
}

/// Two ranks write to each other in turn; who observes the epoch finds the words of that turn.
TYPED_TEST(MemoryVerbs, StoresAreThereBehindTheirAnnouncement) {
  using M = typename TypeParam::M;
  constexpr std::uint32_t kWords = 40;
  constexpr std::uint32_t kTurns = 30;
  this->repeat([](TypeParam& machine) {
    machine.run({.ranks = {0, 1}}, [](M& m, const Call& call) {
      const Workspace& w = call.workspace;
      const int peer = 1 - m.rank();
      for (std::uint32_t turn = 1; turn <= kTurns; ++turn) {
        const bool writes = static_cast<int>(turn % 2) == m.rank();
        if (writes) {
          for (auto i = static_cast<std::uint32_t>(m.lane()); i < kWords; i += M::kLanes)
            m.store(call.peers.on(peer, w.source.at(i)), turn * 1000 + i);
          m.sync_team();
          if (m.lane() == 0)
            m.announce(call.peers.on(peer, w.arrival.at(static_cast<std::uint64_t>(m.rank()))),
                       std::uint64_t{turn});
        } else {
          if (!await(m, call.local(w.arrival) + peer, turn, peer)) return;
          for (std::uint32_t i = 0; i < kWords; ++i)
            EXPECT_EQ(call.local(w.source)[i], turn * 1000 + i);
        }
        m.sync_team();
      }
    });
  });
}

/// All ranks add to one word of rank 2's; each rank's announcement orders its own adds.
TYPED_TEST(MemoryVerbs, AddsAreThereBehindTheAnnouncement) {
  using M = typename TypeParam::M;
  this->repeat([](TypeParam& machine) {
    machine.run({.ranks = {0, 1, 2}}, [](M& m, const Call& call) {
      const Workspace& w = call.workspace;
      for (int i = m.lane(); i < 10; i += M::kLanes)
        m.add(call.peers.on(2, w.received_sum), CountAndMarks{7, 1}.word());
      m.sync_team();
      if (m.lane() == 0)
        m.announce(call.peers.on(2, w.arrival.at(static_cast<std::uint64_t>(m.rank()))),
                   std::uint64_t{1});
      if (m.rank() != 2) return;
      for (int rank = 0; rank < kRanks; ++rank)
        if (!await(m, call.local(w.arrival) + rank, 1, rank)) return;
      const CountAndMarks sum = CountAndMarks::of(m.observe(call.local(w.received_sum)));
      EXPECT_EQ(sum.count, 210U);
      EXPECT_EQ(sum.marks, 30U);
      m.sync_team();
      if (m.lane() == 0) m.clear(call.local(w.received_sum));
      m.sync_team();
      EXPECT_EQ(m.observe(call.local(w.received_sum)), 0U);
    });
  });
}

/// Each worker pushes a row and publishes; who observes the sum finds every row whole, and nothing
/// beside it.
TYPED_TEST(MemoryVerbs, APublishedSumCoversAllRowsPushed) {
  using M = typename TypeParam::M;
  this->repeat([](TypeParam& machine) {
    constexpr int kPushers = 3;
    std::uint32_t runs = 0;
    for (const int count : {8, 16, 40, kHidden}) {
      ++runs;
      machine.run({.ranks = {1}, .workers = kPushers}, [&](M& m, const Call& call) {
        const Workspace& w = call.workspace;
        Bfloat16 values[kHidden];
        for (int i = 0; i < kHidden; ++i)
          values[i] = {static_cast<std::uint16_t>(count * 100 + m.worker() * 10 + i)};
        m.push(call.peers.on(0, w.combine.at(static_cast<std::uint64_t>(m.worker() * kHidden))),
               values,
               count);
        m.sync_team();
        if (m.lane() == 0) m.publish(call.local(w.ready), 1U);
        if (!await(m, call.local(w.ready), runs * kPushers, 1)) return;
        const Bfloat16* rows = call.peers.on(0, w.combine).raw();
        for (int worker = 0; worker < kPushers; ++worker)
          for (int i = 0; i < count; ++i)
            EXPECT_EQ(rows[worker * kHidden + i].bits, count * 100 + worker * 10 + i);
        EXPECT_TRUE(runs > 1 || rows[count].bits == 0xA5A5);
      });
    }
  });
}

/// As many pulls as the machine allows, finished oldest first; each row and weight in its place
/// when its publication is observed.
TYPED_TEST(MemoryVerbs, PullsLandInTheirOrder) {
  using M = typename TypeParam::M;
  this->repeat([](TypeParam& machine) {
    const auto puller = [](M& m, const Call& call) {
      const Workspace& w = call.workspace;
      const int tokens = call.problem.capacity;
      int begun = 0;
      for (int finished = 0; finished < tokens; ++finished) {
        for (; begun < tokens && begun < finished + M::kPullsInFlight; ++begun) {
          const auto token = static_cast<std::uint64_t>(begun);
          const auto row = static_cast<std::uint64_t>(tokens - 1 - begun);
          m.begin_pull({
              .codes =
                  Remote<const std::uint8_t>(call.peers.on(1, w.tokens.at(token * kHidden)).raw()),
              .scales = Remote<const std::uint8_t>(
                  call.peers.on(1, w.token_scales.at(token * kHidden / kScaleGroup)).raw()),
              .weight =
                  Remote<const float>(call.peers.on(1, w.topk_weights.at(4 * token + 1)).raw()),
              .pool_row = call.local(w.linear1_rows.at(row * w.format.linear1_row_bytes)),
              .pool_scales = call.local(w.linear1_scales.at(row * w.format.linear1_scale_bytes)),
              .pool_weight = call.local(w.row_weight.at(row)),
          });
        }
        m.finish_pull();
        m.sync_team();
        if (m.lane() == 0) m.publish(call.local(w.arrived), 1U);
      }
    };
    const auto reader = [&](M& m, const Call& call) {
      const Workspace& w = call.workspace;
      const Call& source = machine.call(1);
      for (int token = 0; token < call.problem.capacity; ++token) {
        if (!await(m, call.local(w.arrived), static_cast<std::uint64_t>(token + 1), 0)) return;
        const int row = call.problem.capacity - 1 - token;
        EXPECT_EQ(call.local(w.row_weight)[row], static_cast<float>(4 * token + 1) / 8);
        const std::vector<std::byte> expected = TypeParam::pool_row(
            source.local(source.workspace.tokens) + token * kHidden,
            source.local(source.workspace.token_scales) + token * (kHidden / kScaleGroup),
            kHidden);
        const std::byte* got =
            call.local(w.linear1_rows) + row * static_cast<int>(w.format.linear1_row_bytes);
        EXPECT_TRUE(std::equal(expected.begin(), expected.end(), got)) << "token " << token;
      }
    };
    machine.run({.workers = 2}, [&](M& m, const Call& call) {
      if (m.worker() == 0)
        puller(m, call);
      else
        reader(m, call);
    });
  });
}

}  // namespace
}  // namespace megamoe::conformance
