#include "runtime/group/frame_socket.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "megamoe/problem.hpp"
#include "runtime/poll_events.hpp"

namespace megamoe {
namespace {

constexpr std::uint32_t kMagic = 0x656F4D6DU;  // "mMoe"
constexpr std::uint64_t kMaxBody = std::uint64_t{64} << 20;
constexpr std::size_t kMaxHandles = kMaxRanks;

struct Header {
  std::uint32_t magic = kMagic;
  FrameKind kind = FrameKind::kOffer;
  std::uint64_t body_bytes = 0;
};

/// Room for the descriptors that travel with a header.
struct Ancillary {
  alignas(cmsghdr) char bytes[CMSG_SPACE(sizeof(int) * kMaxHandles)];
};

bool would_block(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

std::vector<FileHandle> handles_in(msghdr& message) {
  std::vector<FileHandle> handles;
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
      handles.emplace_back(descriptor);
    }
  }
  return handles;
}

void attach(msghdr& message, Ancillary& room, const std::vector<int>& handles) {
  if (handles.empty()) return;
  const std::size_t bytes = handles.size() * sizeof(int);
  message.msg_control = room.bytes;
  message.msg_controllen = CMSG_SPACE(bytes);
  cmsghdr* part = CMSG_FIRSTHDR(&message);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(bytes);
  std::memcpy(CMSG_DATA(part), handles.data(), bytes);
}

}  // namespace

Transfer FrameSocket::wait(short events, const Deadline& deadline) const {
  pollfd entry{descriptor(), events, 0};
  const int ready = poll_events({&entry, 1}, deadline.poll_ms());
  return ready == 0 ? Transfer::kExpired
                    : Transfer::kDone;  // after a signal the transfer asks again
}

Transfer FrameSocket::send_bytes(const char* data, std::size_t bytes, const Deadline& deadline) {
  while (bytes > 0) {
    const ssize_t sent = ::send(descriptor(), data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      data += sent;
      bytes -= static_cast<std::size_t>(sent);
      continue;
    }
    if (!would_block(errno)) return Transfer::kClosed;
    if (wait(POLLOUT, deadline) == Transfer::kExpired) return Transfer::kExpired;
  }
  return Transfer::kDone;
}

Transfer FrameSocket::receive_bytes(char* data, std::size_t bytes, const Deadline& deadline) {
  while (bytes > 0) {
    const ssize_t got = recv(descriptor(), data, bytes, MSG_DONTWAIT);
    if (got > 0) {
      data += got;
      bytes -= static_cast<std::size_t>(got);
      continue;
    }
    if (got == 0 || !would_block(errno)) return Transfer::kClosed;
    if (wait(POLLIN, deadline) == Transfer::kExpired) return Transfer::kExpired;
  }
  return Transfer::kDone;
}

Transfer FrameSocket::send(FrameKind kind,
                           const std::string& body,
                           const std::vector<int>& handles,
                           const Deadline& deadline) {
  Header header{.kind = kind, .body_bytes = body.size()};
  iovec part{&header, sizeof header};
  Ancillary room{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  attach(message, room, handles);
  for (;;) {
    const ssize_t sent = sendmsg(descriptor(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      const auto bytes = static_cast<std::size_t>(sent);
      const Transfer rest = send_bytes(
          reinterpret_cast<const char*>(&header) + bytes, sizeof header - bytes, deadline);
      return rest == Transfer::kDone ? send_bytes(body.data(), body.size(), deadline) : rest;
    }
    if (errno == ETOOMANYREFS) {  // too many descriptors under way: the receivers take them soon
      if (deadline.passed()) return Transfer::kExpired;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      continue;
    }
    if (!would_block(errno)) return Transfer::kClosed;
    if (wait(POLLOUT, deadline) == Transfer::kExpired) return Transfer::kExpired;
  }
}

Transfer FrameSocket::receive(Frame& frame, const Deadline& deadline) {
  Header header;
  iovec part{&header, sizeof header};
  Ancillary room{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = room.bytes;
  message.msg_controllen = sizeof room.bytes;
  ssize_t got = 0;
  while ((got = recvmsg(descriptor(), &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC)) < 0) {
    if (!would_block(errno)) return Transfer::kClosed;
    if (wait(POLLIN, deadline) == Transfer::kExpired) return Transfer::kExpired;
  }
  if (got == 0) return Transfer::kClosed;
  frame.handles = handles_in(message);
  const auto bytes = static_cast<std::size_t>(got);
  const Transfer rest =
      receive_bytes(reinterpret_cast<char*>(&header) + bytes, sizeof header - bytes, deadline);
  if (rest != Transfer::kDone) return rest;
  if (header.magic != kMagic || header.body_bytes > kMaxBody) return Transfer::kMalformed;
  frame.kind = header.kind;
  frame.body.resize(header.body_bytes);
  return receive_bytes(frame.body.data(), frame.body.size(), deadline);
}

bool FrameSocket::is_same_user() const {
  ucred peer{};
  socklen_t bytes = sizeof peer;
  return getsockopt(descriptor(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 &&
         peer.uid == getuid();
}

}  // namespace megamoe
