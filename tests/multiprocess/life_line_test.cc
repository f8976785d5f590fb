#include "runtime/group/life_line.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>

#include "child_process.hpp"
#include "runtime/group/frame_socket.hpp"

namespace megamoe {
namespace {

/// A child, and the life line that it sent.
class LifeLineTest : public testing::TestWithParam<bool> {
 protected:
  void start() {
    int ends[2] = {-1, -1};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    FrameSocket mine{FileHandle{ends[0]}};
    FrameSocket its{FileHandle{ends[1]}};
    child_ = std::make_unique<ChildProcess>([&]() -> std::string {
      const LifeLine line(GetParam());
      its.send(FrameKind::kOffer, "", {line.for_others()}, Deadline(0));
      while (true)
        pause();
    });
    its.close();
    ASSERT_EQ(mine.receive(frame_, Deadline(5000)), Transfer::kDone);
    ASSERT_EQ(frame_.handles.size(), 1U);
  }
  int line() const { return frame_.handles.front().get(); }

  std::unique_ptr<ChildProcess> child_;
  Frame frame_;
};

// A zombie has ended: nobody has awaited the child yet.
TEST_P(LifeLineTest, TellsOfTheEndBeforeTheParentHasAwaitedIt) {
  ASSERT_NO_FATAL_FAILURE(start());
  EXPECT_FALSE(has_ended(line(), 0));
  child_->kill(SIGKILL);
  EXPECT_TRUE(has_ended(line(), 5000));
}

INSTANTIATE_TEST_SUITE_P(Pidfd, LifeLineTest, testing::Values(true));
INSTANTIATE_TEST_SUITE_P(Pipe, LifeLineTest, testing::Values(false));

}  // namespace
}  // namespace megamoe
