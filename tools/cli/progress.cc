#include "cli/progress.hpp"

#include <unistd.h>

#include <iomanip>
#include <iostream>
#include <sstream>

namespace megamoe::cli {
namespace {

constexpr std::chrono::milliseconds kBetweenLines{200};

}  // namespace

Progress::Progress(std::string unit, std::uint64_t total, bool is_shown)
    : unit_(std::move(unit)), total_(total), is_shown_(is_shown && isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  if (has_printed_) std::cerr << "\r\033[K" << std::flush;
}

void Progress::advance_to(std::uint64_t done) {
  if (!is_shown_ || done == 0) return;
  const Clock::time_point now = Clock::now();
  if (now - last_ < kBetweenLines) return;
  last_ = now;
  has_printed_ = true;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double rate = static_cast<double>(done) / seconds;
  std::ostringstream line;
  line << std::fixed << std::setprecision(1) << "\r\033[K" << done << " of " << total_ << " "
       << unit_ << ", " << rate << "/s, " << static_cast<double>(total_ - done) / rate << " s left";
  std::cerr << line.str() << std::flush;
}

}  // namespace megamoe::cli
