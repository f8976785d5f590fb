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
    peers.base[r] = rank.symmetric.as();
  }
  const auto cells =
      static_cast<std::size_t>(problem.capacity) * static_cast<std::size_t>(problem.hidden);
  for (int r = 0; r < problem.ranks; ++r) {
    Rank& rank = ranks_[static_cast<std::size_t>(r)];
    rank.output = DeviceBytes(cells * sizeof(Bfloat16));
    rank.num_tokens = DeviceBytes(sizeof(std::int32_t));
    rank.num_tokens.fill(0);
    pack(rank, r, weights);
    peers.rank = r;
    Call& call = rank.args.call;
    call.problem = problem;
    call.peers = peers;
    call.workspace = workspace_;
    call.experts_per_wave = options.experts_per_wave;
    call.num_tokens = num_tokens(r);
    call.output = rank.output.as<Bfloat16>();
    rank.args.options.timeout_ms = options.timeout_ms;
    set_block_m(r, options.block_m);
  }
  reset();
  set_biases(weights);
}

void DeviceLayer::set_block_m(int rank, int block_m) {
  args(rank).call.ring = {
      .blocks = static_cast<int>(workspace_.pool_rows / block_m),
      .block_m = block_m,
      .linear1_blocks = sm90::layout_of(problem_, options_.operands, Phase::kLinear1).blocks(),
      .linear2_blocks = sm90::layout_of(problem_, options_.operands, Phase::kLinear2).blocks()};
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
}

void DeviceLayer::set_biases(const RandomWeights& weights) {
  if (!problem_.has_biases) return;
  const auto experts = static_cast<std::size_t>(problem_.experts_per_rank());
  const auto biases = [&](const float* from, int rows, DeviceBytes& to) {
    to = upload(std::vector<float>(from, from + experts * static_cast<std::size_t>(rows)));
    return to.as<float>();
  };
  for (int r = 0; r < problem_.ranks; ++r) {
    Rank& rank = ranks_[static_cast<std::size_t>(r)];
    const WeightView view = weights.view().expert(r * problem_.experts_per_rank(), problem_);
    rank.args.linear1.bias =
        biases(view.linear1_bias, 2 * problem_.intermediate, rank.linear1_bias);
    rank.args.linear2.bias = biases(view.linear2_bias, problem_.hidden, rank.linear2_bias);
  }
}

void DeviceLayer::poison() {
  const std::uint64_t first = workspace_.source.offset;
  for (Rank& rank : ranks_)
    expect_cuda(cudaMemset(rank.symmetric.as() + first, 0xFF, workspace_.bytes - first), "poison");
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

void DeviceLayer::prepare() {
  for (Rank& rank : ranks_) {
    rank.output.fill(0x5A);
    // A kernel that is loaded at its first launch may wait for those that run, and they for it.
    cudaFuncAttributes attributes{};
    const auto instance = sm90::instance_of(options_.operands, rank.args.call.ring.block_m);
    expect_cuda(cudaFuncGetAttributes(&attributes, instance.kernel), "loading a kernel");
  }
  expect_cuda(cudaDeviceSynchronize(), "preparing the call");
}

void DeviceLayer::launch(int rank, int workers) {
  sm90::launch(args(rank), options_.operands, workers, options_.co_residence, stream(rank));
}

void DeviceLayer::forward(int workers) {
  prepare();
  for (int r = 0; r < problem_.ranks; ++r)
    launch(r, workers);
  expect_cuda(cudaDeviceSynchronize(), "the call");
  expect_no_fault();
}

void DeviceLayer::expect_no_fault() const {
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

void DeviceLayer::reset() {
  for (Rank& rank : ranks_)
    expect_cuda(cudaMemset(rank.symmetric.as(), 0, workspace_.zeroed_bytes), "reset");
}

std::vector<Bfloat16> DeviceLayer::output(int rank) const {
  const Rank& state = of(rank);
  return download<Bfloat16>(
      state.output.as(),
      static_cast<std::size_t>(state.tokens) * static_cast<std::size_t>(problem_.hidden));
}

bool DeviceLayer::is_intact() const {
  bool all = true;
  for (const Rank& rank : ranks_)
    for (const DeviceBytes* bytes : {&rank.symmetric,
                                     &rank.output,
                                     &rank.num_tokens,
                                     &rank.linear1,
                                     &rank.linear1_bases,
                                     &rank.linear1_bias,
                                     &rank.linear2,
                                     &rank.linear2_bases,
                                     &rank.linear2_bias})
      all = all && bytes->is_intact();
  return all;
}

bool DeviceLayer::counters_are_zero(int rank) const {
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

}  // namespace megamoe::test
