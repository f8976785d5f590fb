#include "runtime/group/death_watch.hpp"

#include <poll.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <utility>

#include "runtime/group/life_line.hpp"
#include "runtime/system_error.hpp"

namespace megamoe {

DeathWatch::DeathWatch(std::vector<FileHandle> life_lines)
    : life_lines_(std::move(life_lines)), stop_(eventfd(0, EFD_CLOEXEC)) {
  if (!stop_.is_open()) throw_system_error("eventfd", errno);
  thread_ = std::thread([this] { watch(); });
}

DeathWatch::~DeathWatch() {
  eventfd_write(stop_.get(), 1);
  thread_.join();
}

std::shared_ptr<void> DeathWatch::observe(Link::OnDeath on_death) {
  const std::lock_guard lock(mutex_);
  for (const int rank : dead_)
    on_death(rank);
  const int number = next_observer_++;
  observers_.emplace(number, std::move(on_death));
  const auto stop_observing = [number](DeathWatch* watch) {
    const std::lock_guard stop(watch->mutex_);
    watch->observers_.erase(number);
  };
  return {this, stop_observing};
}

bool DeathWatch::has_died(int rank, int within_ms) const {
  const FileHandle& line = life_lines_[static_cast<std::size_t>(rank)];
  return line.is_open() && has_ended(line.get(), within_ms);
}

void DeathWatch::watch() {
  std::vector<pollfd> entries{{stop_.get(), POLLIN, 0}};
  for (const FileHandle& line : life_lines_)
    entries.push_back({line.get(), POLLIN, 0});  // poll skips those below zero
  for (;;) {
    if (poll(entries.data(), entries.size(), -1) < 0 && errno != EINTR) return;
    if (entries.front().revents != 0) return;
    for (std::size_t i = 1; i < entries.size(); ++i) {
      if (entries[i].fd < 0 || entries[i].revents == 0) continue;
      entries[i].fd = -1;
      tell(static_cast<int>(i) - 1);
    }
  }
}

void DeathWatch::tell(int rank) {
  const std::lock_guard lock(mutex_);
  dead_.push_back(rank);
  for (const auto& [number, on_death] : observers_)
    on_death(rank);
}

}  // namespace megamoe
