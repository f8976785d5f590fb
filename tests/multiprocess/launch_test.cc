#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>

#include "child_process.hpp"
#include "trial.hpp"

// What the process that starts the ranks makes of their ends.

namespace megamoe {
namespace {

TEST(Launch, HandsOutResultsByRank) {
  const RankBody body = [](Group group) {
    return std::to_string(group.rank()) + " of " + std::to_string(group.ranks());
  };
  const std::vector<std::string> expected{"0 of 3", "1 of 3", "2 of 3"};
  EXPECT_EQ(texts_of(launch_processes(3, body)), expected);
  EXPECT_EQ(texts_of(launch_threads(3, body)), expected);
}

TEST(Launch, TheCauseIsTheRankThatFailedByItself) {
  for (auto* launch : {&launch_processes, &launch_threads}) {
    const auto result = launch(3, [](Group group) -> std::string {
      if (group.rank() == 1) throw Error(ErrorCode::kBadFile, "file 7 is truncated");
      group.gather("");
      return "";
    });
    EXPECT_FALSE(result.is_good());
    EXPECT_EQ(result.cause().sentence, "file 7 is truncated");
    EXPECT_EQ(result.cause().code, ErrorCode::kBadFile);
    EXPECT_EQ(result.ranks[0].code, ErrorCode::kRunFailed);
    EXPECT_NE(result.ranks[0].sentence.find("rank 1 "), std::string::npos)
        << result.ranks[0].sentence;
  }
}

TEST(Launch, ExplainsTheCauseFirstAndNothingTwice) {
  LaunchResult result;
  result.ranks.resize(5);
  const auto fail = [&](std::size_t rank, ErrorCode code, const char* sentence) {
    result.ranks[rank].code = code;
    result.ranks[rank].sentence = sentence;
  };
  fail(0, ErrorCode::kRunFailed, "rank 0 left: rank 3 died");
  fail(1, ErrorCode::kBadFile, "no such file");
  fail(2, ErrorCode::kBadFile, "no such file");
  fail(3, ErrorCode::kRunFailed, "rank 3 was killed");
  result.ranks[3].signal = 9;
  result.ranks[4].is_good = true;
  EXPECT_EQ(result.explain(), "rank 3 was killed\nno such file\nrank 0 left: rank 3 died");
  EXPECT_EQ(&result.cause(), &result.ranks[3]);
}

TEST(Launch, AChildThatExitsBehindOurBackIsNamed) {
  const auto result = launch_processes(2, [](Group group) -> std::string {
    if (group.rank() == 1) _exit(5);
    return "";
  });
  EXPECT_NE(result.ranks[1].sentence.find("ended with exit code 5 and said nothing"),
            std::string::npos)
      << result.ranks[1].sentence;
}

// Its report is whole, so what it still waits for is nobody's: here a pipe that nobody reads.
TEST(Launch, AChildThatReportsAndThenStaysIsEnded) {
  const auto result = launch_processes(2, [](Group group) -> std::string {
    if (group.rank() == 0) return "left";
    int ends[2];
    if (pipe(ends) != 0) return "no pipe";
    std::FILE* const file = fdopen(ends[1], "w");
    const int capacity = fcntl(ends[1], F_GETPIPE_SZ);
    std::setvbuf(file, nullptr, _IOFBF, static_cast<std::size_t>(capacity) + 2);
    for (int i = 0; i <= capacity; ++i)
      std::fputc('x', file);  // one more than the pipe takes: flushing it blocks
    return "stays";
  });
  EXPECT_EQ(texts_of(result), (std::vector<std::string>{"left", "stays"}));
}

TEST(Launch, RefusesANumberOfRanksThatNoGroupHas) {
  EXPECT_EQ(thrown_by([] { launch_processes(0, [](Group) { return std::string(); }); }),
            "invalid argument: ranks is 0; a group has 1 to 72");
  EXPECT_EQ(thrown_by([] { launch_threads(73, [](Group) { return std::string(); }); }),
            "invalid argument: ranks is 73; a group has 1 to 72");
}

/// A process that launches two ranks which stay, and tells their pids.
class Launcher {
 public:
  Launcher()
      : process_([this] {
          launch_processes(2, [this](Group group) -> std::string {
            pids_[group.rank()].set(getpid());
            while (true)
              pause();
          });
          return std::string("came back");
        }) {}

  bool are_ranks_up() const { return pids_[0].await(1) && pids_[1].await(1); }
  bool are_ranks_gone() const {
    return eventually([&] { return !is_running(pids_[0].get()) && !is_running(pids_[1].get()); });
  }
  ChildProcess& process() { return process_; }

 private:
  SharedWord pids_[2];
  ChildProcess process_;
};

TEST(Launch, ChildrenDieWithTheirParent) {
  Launcher launcher;
  ASSERT_TRUE(launcher.are_ranks_up());
  launcher.process().kill(SIGKILL);
  EXPECT_TRUE(launcher.are_ranks_gone());
}

TEST(Launch, ASignalEndsTheChildrenAndThenTheParent) {
  for (const int signal : {SIGTERM, SIGINT}) {
    Launcher launcher;
    ASSERT_TRUE(launcher.are_ranks_up());
    launcher.process().kill(signal);
    EXPECT_EQ(launcher.process().result(), "signal " + std::to_string(signal));
    EXPECT_TRUE(launcher.are_ranks_gone());
  }
}

}  // namespace
}  // namespace megamoe
