#include "runtime/group/in_process_link.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "megamoe/error.hpp"
#include "runtime/group/agree.hpp"

namespace megamoe {
namespace {

template <class Work>
std::string thrown_by(Work work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "nothing";
}

/// What each rank's `work` returns, one thread a rank.
template <class Work>
std::vector<std::string> on_all(int ranks, Work work) {
  auto links = make_in_process_links(ranks);
  std::vector<std::string> results(links.size());
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < links.size(); ++rank)
    threads.emplace_back([&, rank] { results[rank] = work(*links[rank]); });
  threads.clear();
  return results;
}

TEST(InProcessLink, GathersByRankAgainAndAgain) {
  const auto results = on_all(4, [](Link& link) {
    std::string all;
    for (int round = 0; round < 50; ++round) {
      all.clear();
      for (const std::string& text :
           link.gather({"round", 5000}, std::to_string(link.rank() * 100 + round)))
        all += text + " ";
    }
    return all;
  });
  EXPECT_EQ(results, std::vector<std::string>(4, "49 149 249 349 "));
}

TEST(InProcessLink, SharedMemoryIsTheSameForAll) {
  const auto results = on_all(2, [](Link& link) {
    const auto mine = link.allocate(4096);
    std::memcpy(mine->base(), &"xy"[link.rank()], 1);
    const auto all = link.share({"sharing", 5000}, mine);
    link.gather({"reading", 5000}, "");
    return std::string{static_cast<char>(*all[0]->base()), static_cast<char>(*all[1]->base())};
  });
  EXPECT_EQ(results, std::vector<std::string>(2, "xy"));
}

TEST(InProcessLink, AMeetingThatBreaksStaysBrokenForAll) {
  auto links = make_in_process_links(3);
  const std::string first = thrown_by([&] { links[0]->gather({"the roll call", 1}, ""); });
  EXPECT_EQ(first, "rank 0 gave up after 1 ms waiting for ranks 1 and 2 at the roll call");
  EXPECT_EQ(thrown_by([&] { links[2]->gather({"the roll call", 5000}, ""); }), first);
}

TEST(InProcessLink, ARankThatIsGoneIsNotWaitedFor) {
  auto links = make_in_process_links(3);
  links[1].reset();
  EXPECT_EQ(thrown_by([&] {
              links[0]->gather({"the roll call", 0}, "");
            }),
            "rank 1 left while rank 0 waited at the roll call");
}

TEST(InProcessLink, DifferentMeetingsAtOnceAreRefused) {
  const auto results = on_all(2, [](Link& link) {
    const std::string what = link.rank() == 0 ? "breakfast" : "supper";
    return thrown_by([&] { link.gather({what, 5000}, ""); });
  });
  EXPECT_EQ(results[0], results[1]);
  EXPECT_NE(results[0].find("collective calls must come in the same order on every rank"),
            std::string::npos)
      << results[0];
}

TEST(Agree, TheLowestFailingRanksSentenceIsEveryones) {
  const auto results = on_all(4, [](Link& link) {
    return thrown_by([&] {
      agree(link, {"work", 5000}, [&]() -> std::string {
        if (link.rank() == 1) throw Error(ErrorCode::kBadFile, "no such file");
        if (link.rank() == 3) throw std::bad_alloc();
        return "fine";
      });
    });
  });
  EXPECT_EQ(results, std::vector<std::string>(4, "rank 1: no such file"));
}

TEST(Agree, WhatAllSayNeedsNoRank) {
  const auto results = on_all(2, [](Link& link) {
    return thrown_by([&] {
      agree(link, {"work", 5000}, []() -> std::string {
        throw Error(ErrorCode::kInvalidArgument, "topk is 0");
      });
    });
  });
  EXPECT_EQ(results, std::vector<std::string>(2, "topk is 0"));
}

}  // namespace
}  // namespace megamoe
