#include "device_ranks.hpp"

#include <algorithm>

namespace megamoe::test {

DeviceRanks::DeviceRanks(const Problem& problem, const PoolFormat& format, std::int64_t pool_rows)
    : problem_(problem),
      workspace_(
          Workspace::plan(problem, format, pool_rows == 0 ? full_pool_rows(problem) : pool_rows)) {
  ranks_.resize(static_cast<std::size_t>(problem.ranks));
  const auto cells =
      static_cast<std::size_t>(problem.capacity) * static_cast<std::size_t>(problem.hidden);
  for (Rank& rank : ranks_) {
    rank.symmetric = DeviceBytes(workspace_.bytes);
    rank.symmetric.fill(0xA5);
    rank.output = DeviceBytes(cells * sizeof(Bfloat16));
    rank.num_tokens = DeviceBytes(sizeof(std::int32_t));
    rank.num_tokens.fill(0);
  }
  reset();
}

Call DeviceRanks::call_of(int rank) const {
  Call call;
  call.problem = problem_;
  call.peers.rank = rank;
  call.peers.ranks = problem_.ranks;
  for (int r = 0; r < problem_.ranks; ++r)
    call.peers.base[r] = symmetric(r);
  call.workspace = workspace_;
  call.num_tokens = num_tokens(rank);
  call.output = of(rank).output.as<Bfloat16>();
  return call;
}

void DeviceRanks::clear_outputs() {
  for (Rank& rank : ranks_)
    rank.output.fill(0x5A);
}

void DeviceRanks::set_input(int rank, const RandomInput& input) {
  const auto copy = [&](auto place, const auto& values) {
    if (values.empty()) return;
    expect_cuda(cudaMemcpy(symmetric(rank) + place.offset,
                           values.data(),
                           values.size() * sizeof(values[0]),
                           cudaMemcpyHostToDevice),
                "copying an input");
  };
  copy(workspace_.tokens, input.codes);
  copy(workspace_.token_scales, input.scales);
  copy(workspace_.topk_ids, input.ids);
  copy(workspace_.topk_weights, input.weights);
  Rank& state = ranks_[static_cast<std::size_t>(rank)];
  state.tokens = input.tokens;
  const std::int32_t tokens = input.tokens;
  expect_cuda(cudaMemcpy(state.num_tokens.as(), &tokens, sizeof tokens, cudaMemcpyHostToDevice),
              "copying the token count");
}

void DeviceRanks::poison() {
  const std::uint64_t first = workspace_.source.offset;
  for (Rank& rank : ranks_)
    expect_cuda(cudaMemset(rank.symmetric.as() + first, 0xFF, workspace_.bytes - first), "poison");
}

void DeviceRanks::expect_no_fault() const {
  for (int r = 0; r < problem_.ranks; ++r) {
    const FaultRecord record = fault(r);
    require(fault_claims(r) == 0,
            ErrorCode::kRunFailed,
            "rank ",
            r,
            " worker ",
            record.worker,
            " gave up: wait ",
            static_cast<int>(record.wait.what),
            " subject ",
            record.wait.subject,
            " awaited rank ",
            record.wait.awaited_rank,
            " seen ",
            record.observation.seen,
            " expected ",
            record.observation.expected);
  }
}

void DeviceRanks::reset() {
  for (Rank& rank : ranks_)
    expect_cuda(cudaMemset(rank.symmetric.as(), 0, workspace_.zeroed_bytes), "reset");
}

std::vector<Bfloat16> DeviceRanks::output(int rank) const {
  const Rank& state = of(rank);
  return download<Bfloat16>(
      state.output.as(),
      static_cast<std::size_t>(state.tokens) * static_cast<std::size_t>(problem_.hidden));
}

bool DeviceRanks::is_intact() const {
  return std::all_of(ranks_.begin(), ranks_.end(), [](const Rank& rank) {
    return rank.symmetric.is_intact() && rank.output.is_intact() && rank.num_tokens.is_intact();
  });
}

bool DeviceRanks::counters_are_zero(int rank) const {
  const auto is_zero = [&](auto first, std::uint64_t end) {
    const std::vector<std::byte> bytes =
        read(rank, Sym<std::byte>{first.offset}, end - first.offset);
    return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; });
  };
  // The gate, the ranks' arrivals and the progress count for ever; the host reads what lies
  // between.
  return is_zero(workspace_.refusals, workspace_.zeroed_bytes) &&
         read(rank, workspace_.workers_arrived, 1)[0].value == 0 &&
         read(rank, workspace_.abort, 1)[0].value == 0;
}

DeviceBiases upload_biases(const Problem& problem, const RandomWeights& weights, int rank) {
  if (!problem.has_biases) return {};
  const int experts = problem.experts_per_rank();
  const WeightView view = weights.view().expert(rank * experts, problem);
  const auto copy = [&](const float* from, int rows) {
    return upload(std::vector<float>(from, from + static_cast<std::ptrdiff_t>(experts) * rows));
  };
  return {copy(view.linear1_bias, 2 * problem.intermediate),
          copy(view.linear2_bias, problem.hidden)};
}

}  // namespace megamoe::test
