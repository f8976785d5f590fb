#include "runtime/group/socket_link.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "megamoe/error.hpp"
#include "runtime/group/text_list.hpp"

namespace megamoe {
namespace {

/// Rank 0 of two; the other one is a thread that opens its own link, and then this socket, which
/// the test speaks through by itself.
class SocketLinkTest : public testing::Test {
 protected:
  SocketLinkTest() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    peer_ = FrameSocket(FileHandle(dup(ends[1])));
    std::thread other([&] { other_ = SocketLink::open(1, star(ends[1], 0), kLongMs); });
    mine_ = SocketLink::open(0, star(ends[0], 1), kLongMs);
    other.join();
  }

  void offer(const char* meeting) {
    const Deadline soon(kLongMs);
    EXPECT_EQ(peer_.send(FrameKind::kOffer, join_texts({meeting, "mine"}), {}, soon),
              Transfer::kDone);
  }

  static constexpr std::uint64_t kLongMs = 20'000;

  FrameSocket peer_;
  std::shared_ptr<Link> mine_, other_;

 private:
  static std::vector<FrameSocket> star(int socket, std::size_t to) {
    std::vector<FrameSocket> sockets(2);
    sockets[to] = FrameSocket(FileHandle(socket));
    return sockets;
  }
};

// More than sockets hold, for a rank that has been stopped since it came: whoever hands out what
// all brought goes on after the meeting's bound, and the next meeting knows that this rank has
// left.
TEST_F(SocketLinkTest, ARankThatTakesNothingHoldsNobodyUp) {
  offer("the first");
  const std::string large(8'000'000, 'x');
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(mine_->gather({"the first", 200}, large).at(1), "mine");
  EXPECT_LT(std::chrono::steady_clock::now() - began, std::chrono::milliseconds(kLongMs));
  try {
    mine_->gather({"the second", 0}, "");
    FAIL() << "the other rank was not there";
  } catch (const Error& error) {
    EXPECT_NE(
        std::string(error.what()).find("rank 1 left while rank 0 waited for it at the second"),
        std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace megamoe
