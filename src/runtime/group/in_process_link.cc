#include "runtime/group/in_process_link.hpp"

#include <condition_variable>
#include <mutex>
#include <utility>

#include "base/check.hpp"
#include "runtime/deadline.hpp"

namespace megamoe {
namespace {

/// What a rank brings to a meeting.
struct Parcel {
  std::string text;
  std::shared_ptr<Segment> segment;
};

/// Where the ranks meet. A meeting is over when all have brought their parcel; nobody can begin the
/// next one before, and everybody has a copy of the last one's.
class Hub {
 public:
  explicit Hub(int ranks)
      : parcels_(static_cast<std::size_t>(ranks)),
        is_here_(static_cast<std::size_t>(ranks), false),
        has_left_(static_cast<std::size_t>(ranks), false) {}

  std::vector<Parcel> meet(int rank, const Meeting& meeting, Parcel mine) {
    const Deadline deadline(meeting.timeout_ms);
    std::unique_lock lock(mutex_);
    bring(rank, meeting, std::move(mine));
    const std::uint64_t this_one = meetings_;
    if (absent([](bool) { return true; }).empty()) {
      close_meeting();
    } else {
      if (const auto gone = absent([](bool left) { return left; }); !gone.empty())
        break_up(gone, rank, meeting, " left while ");
      const auto is_over = [&] { return meetings_ > this_one || !broken_.empty(); };
      if (!deadline.is_bounded())
        changed_.wait(lock, is_over);
      else if (!changed_.wait_until(lock, deadline.end(), is_over))
        expire(rank, meeting);
    }
    if (meetings_ == this_one) throw Error(ErrorCode::kRunFailed, broken_);
    return result_;
  }

  void leave(int rank) {
    const std::lock_guard lock(mutex_);
    has_left_[static_cast<std::size_t>(rank)] = true;
    for (const bool is_here : is_here_) {
      if (!is_here || !broken_.empty()) continue;
      broken_ = sentence("rank ", rank, " left while others waited for it at ", what_);
      changed_.notify_all();
      return;
    }
  }

 private:
  void bring(int rank, const Meeting& meeting, Parcel mine) {
    if (!broken_.empty()) throw Error(ErrorCode::kRunFailed, broken_);
    const auto index = static_cast<std::size_t>(rank);
    const bool is_first = absent([](bool) { return true; }).size() == is_here_.size();
    if (!is_first && what_ != meeting.what) {
      broken_ = sentence("rank ",
                         rank,
                         " is at ",
                         meeting.what,
                         " while others are at ",
                         what_,
                         "; collective calls must come in the same order on every rank");
      changed_.notify_all();
      throw Error(ErrorCode::kRunFailed, broken_);
    }
    MEGAMOE_CHECK(!is_here_[index]);
    what_ = meeting.what;
    is_here_[index] = true;
    parcels_[index] = std::move(mine);
  }

  template <class Which>
  std::vector<int> absent(Which which) const {
    std::vector<int> ranks;
    for (std::size_t r = 0; r < is_here_.size(); ++r)
      if (!is_here_[r] && which(has_left_[r])) ranks.push_back(static_cast<int>(r));
    return ranks;
  }

  void close_meeting() {
    result_ = std::exchange(parcels_, std::vector<Parcel>(parcels_.size()));
    is_here_.assign(is_here_.size(), false);
    ++meetings_;
    changed_.notify_all();
  }

  void break_up(const std::vector<int>& who, int rank, const Meeting& meeting, const char* how) {
    broken_ = sentence(rank_list(who), how, "rank ", rank, " waited at ", meeting.what);
    changed_.notify_all();
  }

  void expire(int rank, const Meeting& meeting) {
    broken_ = sentence("rank ",
                       rank,
                       " gave up after ",
                       meeting.timeout_ms,
                       " ms waiting for ",
                       rank_list(absent([](bool) { return true; })),
                       " at ",
                       meeting.what);
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::string what_;  // the meeting under way
  std::vector<Parcel> parcels_, result_;
  std::vector<bool> is_here_, has_left_;
  std::uint64_t meetings_ = 0;  // that are over
  std::string broken_;          // why there are no more meetings
};

class InProcessLink : public Link {
 public:
  InProcessLink(int rank, int ranks, std::shared_ptr<Hub> hub)
      : Link(rank, ranks), hub_(std::move(hub)) {}
  ~InProcessLink() override { hub_->leave(rank()); }

  bool is_in_process() const override { return true; }

  std::vector<std::string> gather(const Meeting& meeting, const std::string& mine) override {
    std::vector<std::string> texts;
    for (Parcel& parcel : hub_->meet(rank(), meeting, {mine, nullptr}))
      texts.push_back(std::move(parcel.text));
    return texts;
  }

  std::shared_ptr<Segment> allocate(std::uint64_t bytes) const override {
    return Segment::anonymous(bytes);
  }

  std::vector<std::shared_ptr<Segment>> share(const Meeting& meeting,
                                              std::shared_ptr<Segment> mine) override {
    std::vector<std::shared_ptr<Segment>> segments;
    for (Parcel& parcel : hub_->meet(rank(), meeting, {"", std::move(mine)}))
      segments.push_back(std::move(parcel.segment));
    return segments;
  }

  std::shared_ptr<void> watch(OnDeath) override { return nullptr; }

 private:
  std::shared_ptr<Hub> hub_;
};

}  // namespace

std::vector<std::shared_ptr<Link>> make_in_process_links(int ranks) {
  const auto hub = std::make_shared<Hub>(ranks);
  std::vector<std::shared_ptr<Link>> links;
  for (int rank = 0; rank < ranks; ++rank)
    links.push_back(std::make_shared<InProcessLink>(rank, ranks, hub));
  return links;
}

}  // namespace megamoe
