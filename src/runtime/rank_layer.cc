#include "runtime/rank_layer.hpp"

#include <algorithm>
#include <utility>

#include "base/check.hpp"
#include "runtime/faults.hpp"

namespace megamoe {
namespace {

constexpr std::uintptr_t kOutputAlignment = 16;

/// What a row takes with it from one rank to another, besides its codes and scales.
constexpr std::uint64_t kRowExtraBytes = sizeof(float) + sizeof(std::uint32_t);

void require_view(const WeightView& view, bool has_biases) {
  const std::pair<const char*, const void*> arrays[] = {{"linear1", view.linear1},
                                                        {"linear1_scale", view.linear1_scale},
                                                        {"linear2", view.linear2},
                                                        {"linear2_scale", view.linear2_scale}};
  for (const auto& [name, address] : arrays)
    require(address != nullptr, ErrorCode::kInvalidArgument, "weights: ", name, " is null");
  require(
      (view.linear1_bias != nullptr) == has_biases && (view.linear2_bias != nullptr) == has_biases,
      ErrorCode::kInvalidArgument,
      "weights: linear1_bias and linear2_bias must ",
      has_biases ? "both be given: the layer has biases" : "be null: the layer has no biases");
}

}  // namespace

RankLayer::RankLayer(std::shared_ptr<Station> station)
    : station_(std::move(station)),
      weights_(station_->machine().make_weights(station_->problem())),
      has_expert_(static_cast<std::size_t>(station_->problem().experts_per_rank()), false) {}

std::unique_ptr<RankLayer> RankLayer::sibling() const {
  return std::make_unique<RankLayer>(station_);
}

void RankLayer::set_expert(int local_expert, const WeightView& weights) {
  const Station::Turn turn(*station_);
  const Problem& p = station_->problem();
  require(local_expert >= 0 && local_expert < p.experts_per_rank(),
          ErrorCode::kInvalidArgument,
          "local_expert is ",
          local_expert,
          "; a rank has experts 0 to ",
          p.experts_per_rank() - 1);
  require_view(weights, p.has_biases);
  weights_->pack(local_expert, weights);
  has_expert_[static_cast<std::size_t>(local_expert)] = true;
}

LayerInputs RankLayer::inputs() const {
  const Problem& p = station_->problem();
  const Workspace& w = station_->workspace();
  const Peers& peers = station_->memory().peers();
  const auto cells = static_cast<std::size_t>(p.capacity) * static_cast<std::size_t>(p.hidden);
  const auto pairs = static_cast<std::size_t>(p.pairs());
  return {.tokens = {peers.local(w.tokens), cells},
          .token_scales = {peers.local(w.token_scales), cells / kScaleGroup},
          .topk_weights = {peers.local(w.topk_weights), pairs},
          .topk_ids = {peers.local(w.topk_ids), pairs}};
}

CallReport RankLayer::forward(const ForwardArguments& arguments) {
  const Station::Turn turn(*station_);
  station_->require_usable();
  const Refusal refusal = refusal_of(arguments);
  const bool is_refused = refusal.kind != RefusalKind::kNone;
  const auto num_tokens = static_cast<std::int32_t>(is_refused ? 0 : arguments.num_tokens);
  const Plan& plan = station_->plan_for(num_tokens);
  const Workspace& w = station_->workspace();
  const Call call{.problem = station_->problem(),
                  .peers = station_->memory().peers(),
                  .workspace = w,
                  .ring = ring_of(plan),
                  .experts_per_wave = plan.experts_per_wave,
                  .num_tokens = &num_tokens,
                  .refusal = refusal,
                  .output = reinterpret_cast<Bfloat16*>(arguments.output)};
  station_->begin_call();
  const bool is_good =
      station_->machine().run(call, plan, *weights_, station_->options().timeout_ms);
  if (!is_good) station_->fail_by_fault_record();
  station_->end_call();
  const Refusal verdict = *call.local(w.verdict);
  require(verdict.kind == RefusalKind::kNone,
          ErrorCode::kInvalidArgument,
          refusal_sentence(verdict, call.problem));
  return report_of(num_tokens, plan);
}

void RankLayer::reset() {
  const Station::Turn turn(*station_);
  station_->reset();
}

/// A rank that can't take part as asked still enters the call, so that all ranks hear why.
Refusal RankLayer::refusal_of(const ForwardArguments& arguments) const {
  const int rank = station_->rank();
  const std::int64_t tokens = arguments.num_tokens;
  if (tokens < 0 || tokens > station_->problem().capacity)
    return {.kind = RefusalKind::kTooManyTokens, .rank = rank, .token = tokens};
  const auto missing = std::find(has_expert_.begin(), has_expert_.end(), false);
  if (missing != has_expert_.end())
    return {
        .kind = RefusalKind::kMissingExpert, .rank = rank, .value = missing - has_expert_.begin()};
  const auto address = reinterpret_cast<std::uintptr_t>(arguments.output);
  if (tokens > 0 && (address == 0 || address % kOutputAlignment != 0))
    return {
        .kind = RefusalKind::kOutput, .rank = rank, .value = static_cast<std::int64_t>(address)};
  return first_bad_id(tokens);
}

Refusal RankLayer::first_bad_id(std::int64_t num_tokens) const {
  const Problem& p = station_->problem();
  const auto ids = inputs().topk_ids.first(static_cast<std::size_t>(num_tokens * p.topk));
  const auto bad = std::find_if(ids.begin(), ids.end(), [&](auto id) { return id >= p.experts; });
  if (bad == ids.end()) return {};
  const std::int64_t pair = bad - ids.begin();
  return {.kind = RefusalKind::kExpertId,
          .rank = station_->rank(),
          .token = pair / p.topk,
          .slot = pair % p.topk,
          .value = *bad};
}

CallReport RankLayer::report_of(std::int64_t num_tokens, const Plan& plan) const {
  const Problem& p = station_->problem();
  const auto* rows = station_->memory().peers().local(station_->workspace().expert_rows);
  CallReport report;
  report.expert_rows.assign(rows, rows + p.experts_per_rank());
  report.times = station_->machine().times();
  report.block_m = plan.kernel.block_m;
  std::uint64_t from_others = 0;
  for (const std::uint32_t count : report.expert_rows)
    from_others += count;
  for (const std::int64_t id :
       inputs().topk_ids.first(static_cast<std::size_t>(num_tokens * p.topk)))
    if (id >= 0 && p.rank_of(static_cast<int>(id)) == station_->rank()) --from_others;
  const auto hidden = static_cast<std::uint64_t>(p.hidden);
  report.bytes_pulled = from_others * (hidden + hidden / kScaleGroup + kRowExtraBytes);
  report.bytes_pushed = from_others * hidden * sizeof(Bfloat16);
  return report;
}

}  // namespace megamoe
