#include "cli/rank_output.hpp"

#include <algorithm>
#include <cstring>

namespace megamoe::cli {
namespace {

constexpr std::int64_t kBytesAtOnce = std::int64_t{16} << 20;  // of all ranks, in one meeting

template <class T>
std::string bytes_of(const T* values, std::int64_t count) {
  return {reinterpret_cast<const char*>(values), static_cast<std::size_t>(count) * sizeof(T)};
}

template <class T>
void put(const std::string& bytes, T* to) {
  std::memcpy(to, bytes.data(), bytes.size());
}

}  // namespace

RankOutput::RankOutput(const LayerRun& run, const std::string& path) : run_(run) {
  const Problem& p = run.problem;
  if (run.group == nullptr || run.group->rank() == 0)
    file_ = std::make_unique<OutputFile>(path, run.total_tokens(), p.hidden, p.experts);
  if (run.group == nullptr) return;
  const TokenRange& tokens = run.tokens[static_cast<std::size_t>(run.group->rank())];
  rows_.resize(static_cast<std::size_t>(tokens.count * p.hidden));
  tokens_per_expert_.resize(static_cast<std::size_t>(p.experts_per_rank()));
}

RankPlaces RankOutput::places_of(int rank) {
  if (run_.group != nullptr) return {rows_.data(), tokens_per_expert_.data()};
  const TokenRange& tokens = run_.tokens[static_cast<std::size_t>(rank)];
  return {file_->y().data() + tokens.first * run_.problem.hidden,
          file_->tokens_per_expert().data() + rank * run_.problem.experts_per_rank()};
}

void RankOutput::collect(Group& group) {
  if (run_.group == nullptr) return;
  collect_rows(group);
  const int experts = run_.problem.experts_per_rank();
  const std::vector<std::string> all =
      group.gather(bytes_of(tokens_per_expert_.data(), experts), run_.arguments.layer.timeout_ms);
  if (!has_file()) return;
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    put(all[rank], file_->tokens_per_expert().data() + static_cast<std::int64_t>(rank) * experts);
}

/// In as many meetings as the rank with the most tokens needs.
void RankOutput::collect_rows(Group& group) {
  const std::int64_t hidden = run_.problem.hidden;
  const auto row_bytes = static_cast<std::int64_t>(hidden * sizeof(Bfloat16) * run_.tokens.size());
  const std::int64_t at_once = std::max<std::int64_t>(1, kBytesAtOnce / row_bytes);
  std::int64_t most = 0;
  for (const TokenRange& tokens : run_.tokens)
    most = std::max(most, tokens.count);
  const std::int64_t mine = run_.tokens[static_cast<std::size_t>(group.rank())].count;
  for (std::int64_t first = 0; first < most; first += at_once) {
    const std::int64_t count = std::clamp<std::int64_t>(mine - first, 0, at_once);
    const std::vector<std::string> all =
        group.gather(bytes_of(rows_.data() + std::min(first, mine) * hidden, count * hidden),
                     run_.arguments.layer.timeout_ms);
    if (!has_file()) continue;
    for (std::size_t rank = 0; rank < all.size(); ++rank)
      put(all[rank], file_->y().data() + (run_.tokens[rank].first + first) * hidden);
  }
}

}  // namespace megamoe::cli
