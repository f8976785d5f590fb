#include "sim/rank_host.hpp"

#include <algorithm>

#include "sim/expectation.hpp"

namespace megamoe::sim {

RankHost::RankHost(const Scenario& scenario, const RankMemory& memory, int rank)
    : scenario_(&scenario) {
  const Problem& p = scenario.problem;
  call_.problem = p;
  call_.workspace = scenario.workspace();
  call_.peers = memory.peers(rank);
  output_.resize(static_cast<std::size_t>(p.capacity) * static_cast<std::size_t>(p.hidden));
}

const RankInput& RankHost::input() const {
  return scenario_
      ->calls[static_cast<std::size_t>(number_)][static_cast<std::size_t>(call_.peers.rank)];
}

const Call& RankHost::begin(int number) {
  number_ = number;
  num_tokens_ = input().tokens;
  call_.ring = input().ring;
  call_.experts_per_wave = input().experts_per_wave;
  call_.refusal = input().refusal;
  call_.num_tokens = &num_tokens_;
  call_.output = output_.data();
  first_epoch_ = call_.local(call_.workspace.gate)->value;
  call_.local(call_.workspace.bad_ids)->value = 0;
  std::fill(output_.begin(),
            output_.end(),
            Bfloat16{static_cast<std::uint16_t>(RankMemory::kPoison * 0x101)});
  write_input();
  return call_;
}

void RankHost::write_input() {
  const Problem& p = call_.problem;
  const Workspace& w = call_.workspace;
  const int rank = call_.peers.rank;
  const int tokens = std::min(input().tokens, p.capacity);  // one that refuses has no room for more
  for (int token = 0; token < tokens; ++token) {
    for (int i = 0; i < p.hidden; ++i)
      call_.local(w.tokens)[token * p.hidden + i] = token_code(*scenario_, number_, rank, token, i);
    const int groups = p.hidden / kScaleGroup;
    for (int group = 0; group < groups; ++group)
      call_.local(w.token_scales)[token * groups + group] =
          token_scale(*scenario_, number_, rank, token, group);
  }
  const auto pairs = std::ptrdiff_t{tokens} * p.topk;
  std::copy_n(input().ids.begin(), pairs, call_.local(w.topk_ids));
  std::copy_n(input().weights.begin(), pairs, call_.local(w.topk_weights));
}

}  // namespace megamoe::sim
