#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/deadline.hpp"
#include "runtime/file_handle.hpp"

namespace megamoe {

enum class FrameKind : std::uint32_t {
  kHello,    ///< a rank's number, to the one that waits for it
  kOffer,    ///< what a rank brings to a meeting
  kResult,   ///< what all brought
  kRefusal,  ///< why the meeting failed
};

/// One message between two ranks, descriptors included.
struct Frame {
  FrameKind kind = FrameKind::kOffer;
  std::string body;
  std::vector<FileHandle> handles;
};

/// What became of a transfer.
enum class Transfer {
  kDone,
  kClosed,     ///< the other end is gone
  kExpired,    ///< the deadline passed
  kMalformed,  ///< not a frame of ours
};

/// A stream of frames over a local socket. No wait outlasts its deadline, no signal is raised.
class FrameSocket {
 public:
  FrameSocket() = default;
  explicit FrameSocket(FileHandle socket) : socket_(std::move(socket)) {}

  bool is_open() const { return socket_.is_open(); }
  int descriptor() const { return socket_.get(); }
  void close() { socket_.close(); }

  /// `handles` are sent along; the caller keeps its own.
  Transfer send(FrameKind kind,
                const std::string& body,
                const std::vector<int>& handles,
                const Deadline& deadline);
  Transfer receive(Frame& frame, const Deadline& deadline);

  /// The numeric user id of the process at the other end.
  bool is_same_user() const;

 private:
  Transfer wait(short events, const Deadline& deadline) const;
  Transfer send_bytes(const char* data, std::size_t bytes, const Deadline& deadline);
  Transfer receive_bytes(char* data, std::size_t bytes, const Deadline& deadline);

  FileHandle socket_;
};

}  // namespace megamoe
