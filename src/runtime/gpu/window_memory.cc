#include "runtime/gpu/window_memory.hpp"

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "base/check.hpp"
#include "runtime/deadline.hpp"
#include "runtime/gpu/cuda_call.hpp"
#include "runtime/gpu/nccl_library.hpp"
#include "runtime/gpu/window_pointers.hpp"
#include "runtime/group/agree.hpp"

namespace megamoe {
namespace {

constexpr std::uint64_t kGranule = std::uint64_t{2} << 20;  // what a card maps at once
constexpr auto kBetweenLooks = std::chrono::milliseconds(1);
constexpr std::uint64_t kClosingMs = 2000;

std::string unique_id_text() {
  ncclUniqueId id;
  const ncclResult_t result = nccl().get_unique_id(&id);
  require(result == ncclSuccess,
          ErrorCode::kRunFailed,
          "ncclGetUniqueId failed: ",
          nccl().error_string(result));
  return {id.internal, sizeof id.internal};
}

ncclUniqueId unique_id_of(const std::string& text) {
  ncclUniqueId id;
  MEGAMOE_CHECK(text.size() == sizeof id.internal);
  std::memcpy(id.internal, text.data(), sizeof id.internal);
  return id;
}

/// NCCL's view of the group, and one window over every rank's part. Its calls don't block, so that
/// each wait here has its end, and a rank that dies ends it at once.
class Window {
 public:
  Window(int card, std::shared_ptr<Segment> mine, const Meeting& meeting)
      : card_(card), mine_(std::move(mine)), meeting_(meeting), deadline_(meeting.timeout_ms) {}
  /// Aborts in place of destroying: that waits for nobody, whether peers live or not, and nothing
  /// of NCCL's is under way.
  ~Window() {
    try {
      const CardScope scope(card_);
      if (window_ != nullptr) close_window();
      if (comm_ != nullptr) nccl().abort(comm_);
    } catch (const Error&) {
      // The card is lost, and the window with it.
    }
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  void open(Link& link, const std::string& id) {
    const std::shared_ptr<void> watch = link.watch([this](int rank) { dead_.store(rank); });
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    settle("ncclCommInitRank",
           nccl().init_rank(&comm_, link.ranks(), unique_id_of(id), link.rank(), &config));
    settle("ncclCommWindowRegister",
           nccl().register_window(
               comm_, mine_->base(), mine_->bytes(), &window_, NCCL_WIN_COLL_SYMMETRIC));
    require(window_ != nullptr,
            ErrorCode::kUnsupportedMachine,
            "NCCL gives no window on memory of card ",
            card_,
            ": its symmetric memory is off or the cards can't share memory (NCCL_CUMEM_ENABLE and "
            "NCCL_WIN_ENABLE must not be 0)");
    const int in_reach = nccl().ranks_in_reach(comm_);
    require(in_reach == link.ranks(),
            ErrorCode::kUnsupportedMachine,
            "the group has ",
            link.ranks(),
            " ranks, of which ",
            in_reach,
            " reach each other by loads and stores; all must");
  }

  /// Every rank's part as this card reaches it.
  std::vector<void*> bases(int ranks, DeviceMemory& memory) const {
    std::vector<void*> bases(static_cast<std::size_t>(ranks));
    const std::uint64_t bytes = bases.size() * sizeof bases[0];
    if (nccl().device_pointer != nullptr) {
      for (std::size_t rank = 0; rank < bases.size(); ++rank)
        require_good("ncclGetLsaDevicePointer",
                     nccl().device_pointer(window_, 0, static_cast<int>(rank), &bases[rank]));
      return bases;
    }
    const std::shared_ptr<Segment> room = memory.own_buffer(bytes);
    auto** const to = reinterpret_cast<void**>(room->base());
    require_cuda(write_window_pointers(window_, ranks, to, nullptr), "asking for a window's bases");
    require_cuda(cudaStreamSynchronize(nullptr), "asking for a window's bases");
    memory.read(bases.data(), to, bytes);
    return bases;
  }

 private:
  /// The communicator knows how a call goes on: the call itself may return success as soon as it
  /// has begun.
  void settle(const char* what, ncclResult_t result) const {
    if (result != ncclInProgress) require_good(what, result);
    for (;;) {
      require_good("ncclCommGetAsyncError", nccl().get_async_error(comm_, &result));
      if (result != ncclInProgress) return require_good(what, result);
      const int dead = dead_.load();
      require(dead < 0,
              ErrorCode::kRunFailed,
              "rank ",
              dead,
              " died during ",
              what,
              " at ",
              meeting_.what);
      require(!deadline_.passed(),
              ErrorCode::kRunFailed,
              what,
              " was not done within ",
              meeting_.timeout_ms,
              " ms at ",
              meeting_.what);
      std::this_thread::sleep_for(kBetweenLooks);
    }
  }

  void require_good(const char* what, ncclResult_t result) const {
    require(result == ncclSuccess,
            ErrorCode::kRunFailed,
            what,
            " failed on card ",
            card_,
            ": ",
            nccl().error_string(result),
            result == ncclSuccess ? "" : sentence(" (", nccl().last_error(comm_), ")"));
  }

  void close_window() const {
    const Deadline deadline(kClosingMs);
    nccl().deregister_window(comm_, window_);
    ncclResult_t state = ncclInProgress;
    while (nccl().get_async_error(comm_, &state) == ncclSuccess && state == ncclInProgress &&
           !deadline.passed())
      std::this_thread::sleep_for(kBetweenLooks);
  }

  int card_;
  std::shared_ptr<Segment> mine_;  // goes after the window on it
  Meeting meeting_;
  Deadline deadline_;
  std::atomic<int> dead_{-1};
  ncclComm_t comm_ = nullptr;
  ncclWindow_t window_ = nullptr;
};

/// Memory of one card each, that rank processes share: allocated by NCCL and registered as one
/// window, in which every rank has an address for every rank's part. What the host reads, writes
/// and sets there is done as in plain device memory, a peer's part included.
class WindowMemory : public DeviceMemory {
 public:
  using DeviceMemory::DeviceMemory;

  std::shared_ptr<Segment> allocate(const Link&, std::uint64_t bytes) override {
    const CardScope scope(card());
    const std::uint64_t whole = (bytes + kGranule - 1) / kGranule * kGranule;
    void* memory = nullptr;
    const ncclResult_t result = nccl().allocate(&memory, whole);
    require(result == ncclSuccess,
            ErrorCode::kRunFailed,
            "card ",
            card(),
            " does not give the ",
            whole,
            " bytes of symmetric memory that a rank needs: ",
            nccl().error_string(result));
    auto segment = Segment::held({memory, [](void* held) { nccl().free(held); }}, memory, whole);
    fill(segment->base(), 0, whole);
    return segment;
  }

  std::vector<std::shared_ptr<Segment>> share(Link& link,
                                              const Meeting& meeting,
                                              std::shared_ptr<Segment> mine) override {
    const CardScope scope(card());
    const std::string id = agree(link, {"the bootstrap of NCCL", meeting.timeout_ms}, [&] {
                             return link.rank() == 0 ? unique_id_text() : std::string();
                           }).front();
    const std::uint64_t bytes = mine->bytes();
    const auto window = std::make_shared<Window>(card(), std::move(mine), meeting);
    std::vector<void*> bases;
    agree(link, meeting, [&] {
      window->open(link, id);
      bases = window->bases(link.ranks(), *this);
      return std::string();
    });
    std::vector<std::shared_ptr<Segment>> segments;
    for (void* base : bases)
      segments.push_back(Segment::held(window, base, bytes));
    return segments;
  }
};

}  // namespace

std::string why_no_windows() {
  return why_no_nccl();
}

std::unique_ptr<DeviceMemory> make_window_memory(int card) {
  static_cast<void>(nccl());  // throws where there is none, before anything is asked of it
  return std::make_unique<WindowMemory>(card);
}

}  // namespace megamoe
