#include "protocol/workspace.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace megamoe {
namespace {

struct Span {
  const char* name;
  std::uint64_t begin;
  std::uint64_t bytes;
  std::uint64_t alignment;
};

template <class T>
Span span(const char* name,
          Sym<T> place,
          std::initializer_list<std::int64_t> extents,
          std::uint64_t alignment = alignof(T)) {
  std::uint64_t bytes = sizeof(T);
  for (const std::int64_t extent : extents)
    bytes *= static_cast<std::uint64_t>(extent);
  return {name, place.offset, bytes, alignment};
}

/// Every place of the workspace with the extents that its comment promises.
std::vector<Span> spans(const Problem& p, const Workspace& w) {
  const std::int64_t ring = w.pool_rows / 8;
  const std::int64_t local = p.experts / p.ranks;
  constexpr std::uint64_t kRow = 128;
  return {
      span("abort", w.abort, {1}),
      span("progress", w.progress, {1}),
      span("gate", w.gate, {1}),
      span("workers_arrived", w.workers_arrived, {1}),
      span("fault_claims", w.fault_claims, {1}),
      span("bad_ids", w.bad_ids, {1}),
      span("first_bad_pair", w.first_bad_pair, {1}),
      span("fault", w.fault, {1}),
      span("verdict", w.verdict, {1}),
      span("expert_rows", w.expert_rows, {local}),
      span("arrival", w.arrival, {p.ranks}),
      span("refusals", w.refusals, {p.ranks}),
      span("sent", w.sent, {p.experts}),
      span("received", w.received, {p.ranks, local}),
      span("received_sum", w.received_sum, {local}),
      span("arrived", w.arrived, {ring}),
      span("ready", w.ready, {ring}),
      span("finished", w.finished, {ring}),
      span("tokens", w.tokens, {p.capacity, p.hidden}, kRow),
      span("token_scales", w.token_scales, {p.capacity, p.hidden / 32}, kRow),
      span("topk_weights", w.topk_weights, {p.capacity, p.topk}, kRow),
      span("topk_ids", w.topk_ids, {p.capacity, p.topk}, kRow),
      span("source", w.source, {local, p.ranks, p.capacity, p.topk}, kRow),
      span("combine", w.combine, {p.topk, p.capacity, p.hidden}, kRow),
      span("row_source", w.row_source, {w.pool_rows}, kRow),
      span("row_weight", w.row_weight, {w.pool_rows}, kRow),
      span("linear1_rows", w.linear1_rows, {w.pool_rows, w.format.linear1_row_bytes}, kRow),
      span("linear1_scales", w.linear1_scales, {w.pool_rows, w.format.linear1_scale_bytes}, kRow),
      span("linear2_rows", w.linear2_rows, {w.pool_rows, w.format.linear2_row_bytes}, kRow),
      span("linear2_scales", w.linear2_scales, {w.pool_rows, w.format.linear2_scale_bytes}, kRow)};
}

PoolFormat format_of(const Problem& p) {
  return {.linear1_row_bytes = static_cast<std::uint32_t>(p.hidden),
          .linear1_scale_bytes = static_cast<std::uint32_t>(p.hidden / 32),
          .linear2_row_bytes = static_cast<std::uint32_t>(p.intermediate),
          .linear2_scale_bytes = static_cast<std::uint32_t>(p.intermediate / 32)};
}

void expect_sound(const Problem& p, std::int64_t pool_rows) {
  const Workspace w = Workspace::plan(p, format_of(p), pool_rows);
  SCOPED_TRACE(testing::Message() << "R " << p.ranks << ", E " << p.experts << ", K " << p.topk
                                  << ", H " << p.hidden << ", I " << p.intermediate << ", C "
                                  << p.capacity << ", pool " << pool_rows);
  std::uint64_t end = 0;
  std::uint64_t most_waste = 4096;
  for (const Span& s : spans(p, w)) {
    EXPECT_EQ(s.begin % s.alignment, 0U) << s.name;
    EXPECT_TRUE(s.begin >= end) << s.name << " begins inside the place before it";
    end = s.begin + s.bytes;
    most_waste += 128;
  }
  EXPECT_TRUE(w.bytes >= end);
  EXPECT_TRUE(w.bytes < end + 4096);
  EXPECT_EQ(w.bytes % 4096, 0U);
  EXPECT_GE(w.zeroed_bytes,
            w.finished.offset + static_cast<std::uint64_t>(pool_rows / 8) * sizeof(FinishedBlocks));
  EXPECT_LE(w.zeroed_bytes, w.tokens.offset);
  std::uint64_t sum = 0;
  for (const Span& s : spans(p, w))
    sum += s.bytes;
  EXPECT_TRUE(w.bytes < sum + most_waste) << "more than alignment is lost";
}

Problem random_problem(std::mt19937& random) {
  Problem p;
  p.ranks = 1 + static_cast<int>(random() % kMaxRanks);
  p.experts = p.ranks * (1 + static_cast<int>(random()) % (kMaxExperts / p.ranks));
  if (p.experts < p.ranks) p.experts = p.ranks;
  p.topk = 1 + static_cast<int>(random() % kMaxTopk);
  p.hidden = 32 * (1 + static_cast<int>(random() % 256));
  p.intermediate = 32 * (1 + static_cast<int>(random() % 128));
  p.capacity = 1 + static_cast<int>(random() % kMaxCapacity);
  return p;
}

TEST(Workspace, PlacesAreAlignedAndDoNotOverlap) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    const Problem p = random_problem(random);
    expect_sound(p, kPoolGranule * (1 + static_cast<int>(random() % 1000)));
    expect_sound(p, full_pool_rows(p));
  }
}

/// 72 ranks, 65,536 tokens of 8,192 elements each, K 32: tebibytes, exact to the byte.
TEST(Workspace, TheLargestProblemIsCountedExactly) {
  Problem p;
  p.ranks = kMaxRanks;
  p.experts = 1008;
  p.topk = kMaxTopk;
  p.hidden = 8192;
  p.intermediate = 4096;
  p.capacity = kMaxCapacity;
  EXPECT_EQ(full_pool_rows(p),
            150'997'632);  // 72 * 65,536 * 32 + 14 * 191, up to a multiple of 384
  EXPECT_EQ(full_pool_rows(p) % kPoolGranule, 0);
  expect_sound(p, full_pool_rows(p));
  const Workspace w = Workspace::plan(p, format_of(p), full_pool_rows(p));
  EXPECT_EQ(w.linear1_scales.offset - w.linear1_rows.offset, 150'997'632ULL * 8192);
  EXPECT_EQ(w.row_source.offset - w.combine.offset, 32ULL * 65'536 * 8192 * 2);

  p.ranks = 1;
  p.experts = kMaxExperts;
  expect_sound(p, full_pool_rows(p));
  const Workspace one = Workspace::plan(p, format_of(p), kPoolGranule);
  EXPECT_EQ(one.combine.offset - one.source.offset, 1024ULL * 65'536 * 32 * 4);
}

TEST(Workspace, AFullPoolHoldsTheWorstRouting) {
  std::mt19937 random(3);
  for (int round = 0; round < 500; ++round) {
    Problem p = random_problem(random);
    p.capacity = 1 + static_cast<int>(random() % 50);
    const std::int64_t rows = full_pool_rows(p);
    for (const int block_m : {8, 16, 32, 64, 96, 128, 192}) {
      EXPECT_EQ(rows % block_m, 0);
      // Every expert but one has a single row, which costs a block each; the last one has the rest.
      const std::int64_t total = std::int64_t{p.ranks} * p.pairs();
      const std::int64_t single = std::min<std::int64_t>(p.experts_per_rank() - 1, total - 1);
      const std::int64_t rest = ceil_div<std::int64_t>(total - single, block_m) * block_m;
      EXPECT_LE(single * block_m + rest, rows);
    }
  }
}

TEST(Workspace, GrowsWithEverySize) {
  Problem base;
  base.ranks = 4;
  base.experts = 32;
  base.topk = 6;
  base.hidden = 256;
  base.intermediate = 128;
  base.capacity = 100;
  const auto bytes = [](const Problem& p, std::int64_t rows) {
    return Workspace::plan(p, format_of(p), rows).bytes;
  };
  const std::vector<std::pair<std::string, std::function<void(Problem&, int)>>> sizes = {
      {"experts", [](Problem& p, int i) { p.experts += 4 * i; }},
      {"topk", [](Problem& p, int i) { p.topk += i; }},
      {"hidden", [](Problem& p, int i) { p.hidden += 32 * i; }},
      {"intermediate", [](Problem& p, int i) { p.intermediate += 32 * i; }},
      {"capacity", [](Problem& p, int i) { p.capacity += i; }},
      {"ranks and experts", [](Problem& p, int i) {
         p.ranks += i;
         p.experts = 8 * p.ranks;
       }}};
  for (const auto& [name, grow] : sizes) {
    std::uint64_t last = 0;
    for (int i = 0; i < 30; ++i) {
      Problem p = base;
      grow(p, i);
      EXPECT_GE(bytes(p, 768), last) << name << ' ' << i;
      last = bytes(p, 768);
    }
    EXPECT_GT(last, bytes(base, 768)) << name;
  }
  for (int granules = 1; granules < 30; ++granules)
    EXPECT_GT(bytes(base, kPoolGranule * (granules + 1)), bytes(base, kPoolGranule * granules));
}

TEST(Workspace, ItemsAddUp) {
  std::mt19937 random(11);
  for (int round = 0; round < 50; ++round) {
    const Problem p = random_problem(random);
    const Workspace w = Workspace::plan(p, format_of(p), full_pool_rows(p));
    std::uint64_t end = 0;
    for (const WorkspaceItem& item : items(w)) {
      EXPECT_EQ(item.begin, end) << item.name;
      end += item.bytes;
    }
    EXPECT_EQ(end, w.bytes);
  }
}

}  // namespace
}  // namespace megamoe
