#include "device_layer.hpp"

namespace megamoe::test {

PackedExperts pack_experts(const Problem& problem,
                           const WeightView& of_rank,
                           sm90::Operands operands,
                           Phase phase) {
  const sm90::WeightLayout layout = sm90::layout_of(problem, operands, phase);
  const auto bytes = static_cast<std::size_t>(layout.bytes());
  const auto rows = static_cast<std::size_t>(layout.padded_rows());
  const auto experts = static_cast<std::size_t>(problem.experts_per_rank());
  PackedExperts packed{std::vector<std::byte>(experts * bytes),
                       std::vector<std::int16_t>(experts * rows)};
  parallel_for(problem.experts_per_rank(), [&](int expert) {
    const WeightView view = of_rank.expert(expert, problem);
    const bool is_linear1 = phase == Phase::kLinear1;
    const sm90::CanonicalLinear linear{is_linear1 ? view.linear1 : view.linear2,
                                       is_linear1 ? view.linear1_scale : view.linear2_scale,
                                       is_linear1};
    const auto e = static_cast<std::size_t>(expert);
    sm90::pack(layout,
               linear,
               std::span(packed.codes).subspan(e * bytes, bytes),
               std::span(packed.bases).subspan(e * rows, rows));
  });
  return packed;
}

DeviceLayer::DeviceLayer(const Problem& problem,
                         const RandomWeights& weights,
                         const Options& options)
    : problem_(problem), options_(options) {
  const std::int64_t rows = options.pool_rows == 0 ? full_pool_rows(problem) : options.pool_rows;
  workspace_ = Workspace::plan(problem, sm90::pool_format(problem, options.operands), rows);
  ranks_.resize(static_cast<std::size_t>(problem.ranks));
  Peers peers;
  peers.ranks = problem.ranks;
  for (int r = 0; r < problem.ranks; ++r) {
    Rank& rank = ranks_[static_cast<std::size_t>(r)];
    rank.symmetric = DeviceBytes(workspace_.bytes);
    rank.symmetric.fill(0xA5);
    expect_cuda(cudaMemset(rank.symmetric.as(), 0, workspace_.zeroed_bytes), "cudaMemset");
    peers.base[r] = rank.symmetric.as();
  }
  const auto cells =
      static_cast<std::size_t>(problem.capacity) * static_cast<std::size_t>(problem.hidden);
  for (int r = 0; r < problem.ranks; ++r) {
    Rank& rank = ranks_[static_cast<std::size_t>(r)];
    rank.output = DeviceBytes(cells * sizeof(Bfloat16));
    rank.num_tokens = DeviceBytes(sizeof(std::int32_t));
    expect_cuda(cudaStreamCreateWithFlags(&rank.stream, cudaStreamNonBlocking), "a stream");
    pack(rank, r, weights);
    peers.rank = r;
    Call& call = rank.args.call;
    call.problem = problem;
    call.peers = peers;
    call.workspace = workspace_;
    call.ring = {
        .blocks = static_cast<int>(rows / options.block_m),
        .block_m = options.block_m,
        .linear1_blocks = sm90::layout_of(problem, options.operands, Phase::kLinear1).blocks(),
        .linear2_blocks = sm90::layout_of(problem, options.operands, Phase::kLinear2).blocks()};
    call.experts_per_wave = options.experts_per_wave;
    call.num_tokens = rank.num_tokens.as<std::int32_t>();
    call.output = rank.output.as<Bfloat16>();
    rank.args.options.timeout_ms = options.timeout_ms;
  }
}

void DeviceLayer::pack(Rank& rank, int index, const RandomWeights& weights) {
  const WeightView view = weights.view().expert(index * problem_.experts_per_rank(), problem_);
  const auto one = [&](Phase phase, DeviceBytes& codes, DeviceBytes& bases) {
    const PackedExperts packed = pack_experts(problem_, view, options_.operands, phase);
    codes = upload(packed.codes);
    bases = upload(packed.bases);
    return sm90::LinearWeights{codes.as(), bases.as<std::int16_t>(), nullptr};
  };
  rank.args.linear1 = one(Phase::kLinear1, rank.linear1, rank.linear1_bases);
  rank.args.linear2 = one(Phase::kLinear2, rank.linear2, rank.linear2_bases);
  if (!problem_.has_biases) return;
  const auto experts = static_cast<std::size_t>(problem_.experts_per_rank());
  const auto biases = [&](const float* from, int rows, DeviceBytes& to) {
    to = upload(std::vector<float>(from, from + experts * static_cast<std::size_t>(rows)));
    return to.as<float>();
  };
  rank.args.linear1.bias = biases(view.linear1_bias, 2 * problem_.intermediate, rank.linear1_bias);
  rank.args.linear2.bias = biases(view.linear2_bias, problem_.hidden, rank.linear2_bias);
}

void DeviceLayer::set_input(int rank, const RandomInput& input) {
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

void DeviceLayer::forward(int workers) {
  for (Rank& rank : ranks_) {
    rank.output.fill(0x5A);
  }
  expect_cuda(cudaDeviceSynchronize(), "preparing the call");
  for (Rank& rank : ranks_)
    sm90::launch(rank.args, options_.operands, workers, options_.co_residence, rank.stream);
  expect_cuda(cudaDeviceSynchronize(), "the call");
  for (int r = 0; r < problem_.ranks; ++r) {
    const FaultRecord fault = read(r, workspace_.fault, 1)[0];
    const auto claims = read(r, workspace_.fault_claims, 1)[0].value;
    require(claims == 0,
            ErrorCode::kRunFailed,
            "rank ",
            r,
            " worker ",
            fault.worker,
            " gave up: wait ",
            static_cast<int>(fault.wait.what),
            " subject ",
            fault.wait.subject,
            " awaited rank ",
            fault.wait.awaited_rank,
            " seen ",
            fault.observation.seen,
            " expected ",
            fault.observation.expected,
            " claims ",
            claims);
  }
}

std::vector<Bfloat16> DeviceLayer::output(int rank) const {
  const Rank& state = ranks_[static_cast<std::size_t>(rank)];
  return download<Bfloat16>(
      state.output.as(),
      static_cast<std::size_t>(state.tokens) * static_cast<std::size_t>(problem_.hidden));
}

}  // namespace megamoe::test
