#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "child_process.hpp"
#include "trial.hpp"

// Processes that somebody else started, and that meet by a name.

namespace megamoe {
namespace {

std::string unique_name() {
  static int number = 0;
  return "test-" + std::to_string(getpid()) + "-" + std::to_string(number++);
}

/// One process a place; what each said.
std::vector<std::string> meet(const std::vector<ProcessPlace>& places,
                              const std::function<std::string(Group&)>& then) {
  std::vector<ChildProcess> processes;
  for (const ProcessPlace& place : places)
    processes.emplace_back([&] {
      Group group = Group::processes(place);
      return then(group);
    });
  std::vector<std::string> results;
  for (ChildProcess& process : processes)
    results.push_back(process.result());
  return results;
}

std::string say_rank(Group& group) {
  return "rank " + std::to_string(group.rank()) + " of " + std::to_string(group.ranks());
}

TEST(ByName, GivesTheBitsThatThreadsGive) {
  const Trial trial(Trial::small(3));
  const std::string name = unique_name();
  const auto run = [&](Group& group) {
    return run_once(group, trial, test_options(), 3 * group.rank(), 3);
  };
  EXPECT_EQ(meet({{2, 3, name}, {0, 3, name}, {1, 3, name}}, run).front(),
            texts_of(launch_threads(3, [&](Group group) { return run(group); })).back());
}

TEST(ByName, OneRankNeedsNobody) {
  EXPECT_EQ(meet({{0, 1, unique_name()}}, say_rank), std::vector<std::string>{"rank 0 of 1"});
}

TEST(ByName, MissingRanksAreNamedOnAll) {
  const std::string name = unique_name();
  const auto said = meet({{0, 4, name, 150}, {2, 4, name, 150}}, say_rank);
  EXPECT_EQ(said,
            std::vector<std::string>(
                2,
                "run failed: rank 0 gave up after 150 ms waiting for ranks 1 and 3 at the "
                "rendezvous \"" +
                    name + "\""));
}

TEST(ByName, AMissingRankZeroIsNamed) {
  const std::string name = unique_name();
  EXPECT_EQ(meet({{1, 2, name, 50}}, say_rank).front(),
            "run failed: rank 1 gave up after 50 ms waiting for rank 0 at the rendezvous \"" +
                name + "\"");
}

TEST(ByName, ADeathBeforeTheRendezvousIsAMissingRank) {
  const std::string name = unique_name();
  ChildProcess dead([] { return std::string(); });
  dead.result();
  const auto said = meet({{0, 2, name, 100}}, say_rank);
  EXPECT_NE(said[0].find("waiting for rank 1 at the rendezvous"), std::string::npos) << said[0];
}

TEST(ByName, TwoThatClaimOneRankAreRefusedOnAll) {
  const std::string name = unique_name();
  const auto said = meet({{0, 3, name}, {1, 3, name}, {1, 3, name}}, say_rank);
  EXPECT_EQ(
      said,
      std::vector<std::string>(3, "invalid argument: two processes claim rank 1 of the group"));
}

bool is_open(const std::string& name) {
  std::ifstream sockets("/proc/net/unix");
  const std::string all{std::istreambuf_iterator<char>(sockets), {}};
  return all.find("@megamoe/" + name + "\n") != std::string::npos;
}

TEST(ByName, ASecondRankZeroIsRefused) {
  const std::string name = unique_name();
  ChildProcess first([&] {
    Group group = Group::processes({0, 2, name});
    return say_rank(group);
  });
  ASSERT_TRUE(eventually([&] { return is_open(name); }));
  EXPECT_EQ(thrown_by([&] {
              Group::processes({0, 2, name});
            }),
            "invalid argument: another process on this host is rank 0 of a rendezvous \"" + name +
                "\": two processes claim rank 0, or two groups use one name");
  EXPECT_EQ(meet({{1, 2, name}}, say_rank).front(), "rank 1 of 2");
  EXPECT_EQ(first.result(), "rank 0 of 2");
  EXPECT_FALSE(is_open(name));
}

TEST(ByName, RanksThatDisagreeOnTheirNumberAreRefused) {
  const std::string name = unique_name();
  const auto said = meet({{0, 3, name}, {1, 2, name}, {2, 3, name}}, say_rank);
  EXPECT_EQ(said[0],
            "invalid argument: ranks 0 and 1 disagree on ranks of the group: 3 on rank 0, 2 on "
            "rank 1");
  EXPECT_EQ(said[1], said[0]);
}

// E2: one host it must be.
TEST(ByName, AnotherHostNameIsRefusedOnAll) {
  const std::string name = unique_name();
  ChildProcess moved([&]() -> std::string {
    if (unshare(CLONE_NEWUTS) != 0 || sethostname("elsewhere", 9) != 0) return "not permitted";
    Group group = Group::processes({1, 2, name, 2000});
    return say_rank(group);
  });
  const std::string here = meet({{0, 2, name, 2000}}, say_rank).front();
  const std::string there = moved.result();
  if (there == "not permitted") GTEST_SKIP() << "this user may not set a host name";
  EXPECT_EQ(here, there);
  EXPECT_NE(here.find("ranks 0 and 1 disagree on host name (all ranks must be on one host)"),
            std::string::npos)
      << here;
}

TEST(ByName, PlacesThatCanNotBeAreRefusedAtOnce) {
  EXPECT_EQ(thrown_by([] {
              Group::processes({2, 2, "x"});
            }),
            "invalid argument: rank is 2; the group has ranks 0 to 1");
  EXPECT_EQ(thrown_by([] {
              Group::processes({0, 73, "x"});
            }),
            "invalid argument: ranks is 73; a group has 1 to 72");
  EXPECT_NE(thrown_by([] {
              Group::processes({0, 1, std::string(200, 'x')});
            }).find("200 characters"),
            std::string::npos);
}

TEST(ByName, TheEnvironmentGivesThePlace) {
  const std::string name = unique_name();
  std::vector<ChildProcess> processes;
  for (int rank = 0; rank < 2; ++rank)
    processes.emplace_back([&] {
      setenv("RANK", std::to_string(rank).c_str(), 1);
      setenv("WORLD_SIZE", "2", 1);
      setenv("MEGAMOE_RENDEZVOUS", name.c_str(), 1);
      Group group = Group::from_environment();
      return say_rank(group);
    });
  EXPECT_EQ(processes[0].result(), "rank 0 of 2");
  EXPECT_EQ(processes[1].result(), "rank 1 of 2");
}

}  // namespace
}  // namespace megamoe
