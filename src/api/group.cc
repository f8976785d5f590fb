#include "megamoe/group.hpp"

#include <cstdlib>
#include <utility>

#include "base/check.hpp"
#include "megamoe/problem.hpp"
#include "runtime/group/environment.hpp"
#include "runtime/group/in_process_link.hpp"
#include "runtime/group/rendezvous.hpp"

namespace megamoe {
namespace {

void require_ranks(int ranks) {
  require(ranks >= 1 && ranks <= kMaxRanks,
          ErrorCode::kInvalidArgument,
          "ranks is ",
          ranks,
          "; a group has 1 to ",
          kMaxRanks);
}

}  // namespace

std::vector<Group> Group::in_process(int ranks) {
  require_ranks(ranks);
  std::vector<Group> groups;
  for (auto& link : make_in_process_links(ranks))
    groups.emplace_back(std::move(link));
  return groups;
}

Group Group::processes(const ProcessPlace& place) {
  require_ranks(place.ranks);
  require(place.rank >= 0 && place.rank < place.ranks,
          ErrorCode::kInvalidArgument,
          "rank is ",
          place.rank,
          "; the group has ranks 0 to ",
          place.ranks - 1);
  return Group(meet_by_name(place.rank, place.ranks, place.name, place.timeout_ms));
}

Group Group::from_environment(std::uint64_t timeout_ms) {
  // Read while nobody of ours changes the environment.
  const LaunchedPlace place = place_from_environment([](const char* name) {
    return std::getenv(name);  // NOLINT(concurrency-mt-unsafe)
  });
  return processes({place.rank, place.ranks, place.name, timeout_ms});
}

Group::Group(std::shared_ptr<Link> link) : link_(std::move(link)) {}
Group::~Group() = default;
Group::Group(Group&&) noexcept = default;
Group& Group::operator=(Group&&) noexcept = default;

const std::shared_ptr<Link>& Group::link() const {
  require(link_ != nullptr, ErrorCode::kInvalidArgument, "the group was moved from");
  return link_;
}

int Group::rank() const {
  return link()->rank();
}

int Group::ranks() const {
  return link()->ranks();
}

std::vector<std::string> Group::gather(const std::string& mine, std::uint64_t timeout_ms) {
  return link()->gather({"a gathering of the caller's", timeout_ms}, mine);
}

}  // namespace megamoe
