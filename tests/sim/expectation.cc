#include "sim/expectation.hpp"

#include <bit>

#include "numerics/bfloat16.hpp"
#include "sim/random.hpp"

namespace megamoe::sim {
namespace {

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

std::vector<int> round_robin(std::vector<int> left) {
  std::vector<int> order;
  for (bool took_any = true; took_any;) {
    took_any = false;
    for (std::size_t rank = 0; rank < left.size(); ++rank) {
      if (left[rank] == 0) continue;
      --left[rank];
      order.push_back(static_cast<int>(rank));
      took_any = true;
    }
  }
  return order;
}

}  // namespace

std::uint8_t token_code(const Scenario& scenario, int call, int rank, int token, int byte) {
  return static_cast<std::uint8_t>(mix_all(scenario.seed, 1, call, rank, token, byte));
}

std::uint8_t token_scale(const Scenario& scenario, int call, int rank, int token, int group) {
  return static_cast<std::uint8_t>(mix_all(scenario.seed, 2, call, rank, token, group));
}

std::uint64_t content_of(const std::uint8_t* codes, const std::uint8_t* scales, int hidden) {
  std::uint64_t content = 0;
  for (int i = 0; i < hidden; ++i)
    content = mix_all(content, codes[i]);
  for (int i = 0; i < hidden / kScaleGroup; ++i)
    content = mix_all(content, scales[i]);
  return content;
}

std::uint64_t row_tag(std::uint64_t content, float weight, int expert) {
  return mix_all(content, std::bit_cast<std::uint32_t>(weight), expert);
}

std::uint64_t cell_value(std::uint64_t tag, int n) {
  return mix_all(tag, n);
}

std::uint64_t settled_cell(std::uint64_t cell) {
  return cell + 0x5E77'1ED0'0000'0001U;
}

Bfloat16 slot_value(std::uint64_t tag, int channel) {
  const std::uint64_t hash = mix_all(tag, channel);
  const std::uint64_t sign = hash >> 63;
  // A third are +-2^30: what is added between two that cancel is lost, in that order only.
  const bool is_large = (hash >> 32) % 3 == 0;
  const std::uint64_t exponent = is_large ? 127 + 30 : 120 + (hash >> 8) % 15;
  const std::uint64_t fraction = is_large ? 0 : hash & 0x7F;
  return {static_cast<std::uint16_t>((sign << 15) | (exponent << 7) | fraction)};
}

Expectation::Expectation(const Scenario& scenario, int call)
    : scenario_(scenario),
      call_(call),
      received_(at(scenario.problem.experts), std::vector<int>(at(scenario.problem.ranks))),
      bad_pairs_(at(scenario.problem.ranks)),
      tags_(at(scenario.problem.ranks)) {
  const Problem& p = scenario.problem;
  for (int rank = p.ranks - 1; rank >= 0; --rank) {
    const RankInput& in = input(rank);
    if (in.refusal.kind != RefusalKind::kNone)
      verdict_ = in.refusal;
    else if (in.tokens > p.capacity)
      verdict_ = {RefusalKind::kTooManyTokens, rank, in.tokens, 0, 0};
    count(rank);
  }
  for (const auto& counts : received_)
    order_.push_back(round_robin(counts));
}

void Expectation::count(int rank) {
  const RankInput& in = input(rank);
  for (int pair = 0; pair < live_tokens(rank) * scenario_.problem.topk; ++pair) {
    const std::int64_t id = in.ids[at(pair)];
    if (is_valid(id)) ++received_[static_cast<std::size_t>(id)][at(rank)];
    if (id >= scenario_.problem.experts) bad_pairs_[at(rank)].push_back(pair);
    tags_[at(rank)].push_back(is_valid(id) ? make_tag(rank, pair) : 0);
  }
}

const RankInput& Expectation::input(int rank) const {
  return scenario_.calls[at(call_)][at(rank)];
}

int Expectation::live_tokens(int rank) const {
  const RankInput& in = input(rank);
  const bool refuses =
      in.refusal.kind != RefusalKind::kNone || in.tokens > scenario_.problem.capacity;
  return refuses ? 0 : in.tokens;
}

bool Expectation::is_valid(std::int64_t id) const {
  return id >= 0 && id < scenario_.problem.experts;
}

int Expectation::received(int expert, int rank) const {
  return received_[at(expert)][at(rank)];
}

int Expectation::rows(int expert) const {
  return static_cast<int>(order_[at(expert)].size());
}

const std::vector<int>& Expectation::order(int expert) const {
  return order_[at(expert)];
}

bool Expectation::is_row_of(int expert, SourceSlot slot) const {
  return slot.rank < tags_.size() && slot.pair < tags_[slot.rank].size() &&
         input(static_cast<int>(slot.rank)).ids[slot.pair] == expert;
}

std::uint64_t Expectation::make_tag(int rank, int pair) const {
  const Problem& p = scenario_.problem;
  std::vector<std::uint8_t> codes, scales;
  for (int i = 0; i < p.hidden; ++i)
    codes.push_back(token_code(scenario_, call_, rank, pair / p.topk, i));
  for (int i = 0; i < p.hidden / kScaleGroup; ++i)
    scales.push_back(token_scale(scenario_, call_, rank, pair / p.topk, i));
  const RankInput& in = input(rank);
  return row_tag(content_of(codes.data(), scales.data(), p.hidden),
                 in.weights[at(pair)],
                 static_cast<int>(in.ids[at(pair)]));
}

std::vector<Bfloat16> Expectation::output(int rank) const {
  const Problem& p = scenario_.problem;
  std::vector<Bfloat16> y;
  for (int token = 0; token < live_tokens(rank); ++token) {
    std::vector<float> sums(at(p.hidden));
    for (int pair = token * p.topk; pair < (token + 1) * p.topk; ++pair) {
      if (!is_valid(input(rank).ids[at(pair)])) continue;
      const std::uint64_t row = tags_[at(rank)][at(pair)];
      for (int channel = 0; channel < p.hidden; ++channel)
        sums[at(channel)] += to_float(slot_value(row, channel));
    }
    for (const float sum : sums)
      y.push_back(to_bfloat16(sum));
  }
  return y;
}

}  // namespace megamoe::sim
