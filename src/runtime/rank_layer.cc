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
    : weights_(station->machine().make_weights(station->problem())),
      has_expert_(static_cast<std::size_t>(station->problem().experts_per_rank()), false),
      station_(std::move(station)) {}

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
  station_->machine().finish_all();
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

void RankLayer::write(const TokenRows& rows) {
  const Station::Turn turn(*station_);
  station_->machine().finish_all();
  const LayerInputs to = inputs();
  const auto hidden = static_cast<std::uint64_t>(station_->problem().hidden);
  const std::uint64_t first = static_cast<std::uint64_t>(rows.first) * hidden;
  const std::uint64_t cells = static_cast<std::uint64_t>(rows.count) * hidden;
  station_->kind().write(to.tokens.data() + first, rows.codes, cells);
  station_->kind().write(
      to.token_scales.data() + first / kScaleGroup, rows.scales, cells / kScaleGroup);
}

void RankLayer::write(const RoutingRows& rows) {
  const Station::Turn turn(*station_);
  station_->machine().finish_all();
  const LayerInputs to = inputs();
  const auto topk = static_cast<std::uint64_t>(station_->problem().topk);
  const std::uint64_t first = static_cast<std::uint64_t>(rows.first) * topk;
  const std::uint64_t pairs = static_cast<std::uint64_t>(rows.count) * topk;
  station_->kind().write(to.topk_ids.data() + first, rows.ids, pairs * sizeof *rows.ids);
  station_->kind().write(
      to.topk_weights.data() + first, rows.weights, pairs * sizeof *rows.weights);
}

CallReport RankLayer::forward(const ForwardArguments& arguments) {
  const Station::Turn turn(*station_);
  station_->require_usable();
  station_->require_peers();
  const StreamCall asked{.num_tokens = arguments.num_tokens, .output = arguments.output};
  const CallOrder order{.timeout_ms = station_->options().timeout_ms};
  const bool is_staged = arguments.output != nullptr && !station_->kind().holds(arguments.output);
  std::uint16_t* const output = is_staged ? staged_output() : arguments.output;
  begin(asked, output, order);
  CallReport done = conclude(order);
  if (is_staged)
    station_->kind().read(arguments.output,
                          output,
                          static_cast<std::uint64_t>(arguments.num_tokens) *
                              static_cast<std::uint64_t>(station_->problem().hidden) *
                              sizeof(Bfloat16));
  return done;
}

void RankLayer::enqueue(const StreamCall& call) {
  const Station::Turn turn(*station_);
  begin(call, call.output, order_on(call.stream));
}

CallReport RankLayer::wait(void* stream) {
  const Station::Turn turn(*station_);
  return conclude(order_on(stream));
}

/// On a stream that the machine takes, of a layer that may be called.
CallOrder RankLayer::order_on(void* stream) const {
  station_->require_usable();
  const CallOrder order{.timeout_ms = station_->options().timeout_ms, .stream = stream};
  station_->machine().require_stream(order);
  return order;
}

void RankLayer::reset() {
  const Station::Turn turn(*station_);
  station_->reset();
}

void RankLayer::begin(const StreamCall& asked, std::uint16_t* output, const CallOrder& order) {
  const Call call = call_of(asked, output);
  station_->begin_call(
      call, [&] { station_->machine().begin(call, station_->plan(), *weights_, order); });
}

CallTimings RankLayer::time_calls(const TimedCalls& what) {
  const Station::Turn turn(*station_);
  station_->require_usable();
  std::uint16_t* const output = staged_output();
  const Call call = call_of({.num_tokens = what.num_tokens, .output = output}, output);
  const CallOrder order{.timeout_ms = station_->options().timeout_ms};
  CallTimings timings;
  station_->begin_call(call, [&] {
    timings.microseconds =
        station_->machine().time_calls(call, station_->plan(), *weights_, order.timeout_ms, what);
  });
  timings.last = conclude(order);
  return timings;
}

/// The call as the machine takes it, and with it the station's plan. `output` is where the machine
/// writes: the one that was asked for, or what stands for it.
Call RankLayer::call_of(const StreamCall& asked, std::uint16_t* output) {
  Refusal refusal = refusal_of(asked);
  if (refusal.kind == RefusalKind::kNone && output != nullptr && !station_->kind().holds(output))
    refusal = {.kind = RefusalKind::kOutputPlace,
               .rank = station_->rank(),
               .value = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(output))};
  const bool is_refused = refusal.kind != RefusalKind::kNone;
  const bool is_counted_later = asked.num_tokens_on_device != nullptr && !is_refused;
  const auto num_tokens = static_cast<std::int32_t>(is_refused ? 0 : asked.num_tokens);
  const Plan& plan = station_->plan_for(
      is_counted_later ? station_->problem().capacity : num_tokens, asked.expected_tokens);
  return {.problem = station_->problem(),
          .peers = station_->memory().peers(),
          .workspace = station_->workspace(),
          .ring = ring_of(plan),
          .experts_per_wave = plan.experts_per_wave,
          .num_tokens = is_counted_later ? asked.num_tokens_on_device : nullptr,
          .fixed_tokens = num_tokens,
          .refusal = refusal,
          .output = reinterpret_cast<Bfloat16*>(output)};
}

CallReport RankLayer::conclude(const CallOrder& order) {
  station_->machine().finish(order);
  station_->require_good_calls();
  return report();
}

/// Room for the largest call's rows; made when it is first needed, and when there is none the other
/// ranks need not wait for this one.
std::uint16_t* RankLayer::staged_output() {
  const Problem& p = station_->problem();
  const std::uint64_t bytes = static_cast<std::uint64_t>(p.capacity) *
                              static_cast<std::uint64_t>(p.hidden) * sizeof(Bfloat16);
  try {
    if (staged_output_ == nullptr) staged_output_ = station_->kind().own_buffer(bytes);
  } catch (...) {
    station_->stop_peers();
    throw;
  }
  return reinterpret_cast<std::uint16_t*>(staged_output_->base());
}

/// A rank that can't take part as asked still enters the call, so that all ranks hear why.
Refusal RankLayer::refusal_of(const StreamCall& asked) const {
  const int rank = station_->rank();
  const std::int64_t tokens = asked.num_tokens;
  const bool is_counted_later = asked.num_tokens_on_device != nullptr;
  if (!is_counted_later && (tokens < 0 || tokens > station_->problem().capacity))
    return {.kind = RefusalKind::kTooManyTokens, .rank = rank, .token = tokens};
  const auto missing = std::find(has_expert_.begin(), has_expert_.end(), false);
  if (missing != has_expert_.end())
    return {
        .kind = RefusalKind::kMissingExpert, .rank = rank, .value = missing - has_expert_.begin()};
  const auto address = reinterpret_cast<std::uintptr_t>(asked.output);
  if ((tokens > 0 || is_counted_later) && (address == 0 || address % kOutputAlignment != 0))
    return {
        .kind = RefusalKind::kOutput, .rank = rank, .value = static_cast<std::int64_t>(address)};
  return station_->machine().masks_bad_ids() ? Refusal{} : first_bad_id(tokens);
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

CallReport RankLayer::report() const {
  const Problem& p = station_->problem();
  const Call& call = station_->last_call();
  CallReport report;
  report.expert_rows.resize(static_cast<std::size_t>(p.experts_per_rank()));
  station_->kind().read(report.expert_rows.data(),
                        call.local(call.workspace.expert_rows),
                        report.expert_rows.size() * sizeof(std::uint32_t));
  report.times = station_->machine().times();
  report.block_m = call.ring.block_m;
  report.masked_ids = take_masked_ids();
  std::uint64_t from_others = 0;
  for (const std::uint32_t count : report.expert_rows)
    from_others += count;
  const std::int64_t num_tokens =
      call.num_tokens == nullptr ? call.fixed_tokens : station_->kind().copy_of(call.num_tokens);
  from_others -= std::min(from_others, rows_of_own(num_tokens));
  const auto hidden = static_cast<std::uint64_t>(p.hidden);
  report.bytes_pulled = from_others * (hidden + hidden / kScaleGroup + kRowExtraBytes);
  report.bytes_pushed = from_others * hidden * sizeof(Bfloat16);
  return report;
}

/// Rows of this rank's tokens that its own experts got.
std::uint64_t RankLayer::rows_of_own(std::int64_t num_tokens) const {
  const Problem& p = station_->problem();
  if (p.ranks == 1) return static_cast<std::uint64_t>(p.pairs());
  const std::int64_t tokens = std::clamp<std::int64_t>(num_tokens, 0, p.capacity);
  std::vector<std::int64_t> ids(static_cast<std::size_t>(tokens * p.topk));
  station_->kind().read(ids.data(), inputs().topk_ids.data(), ids.size() * sizeof(std::int64_t));
  return static_cast<std::uint64_t>(std::count_if(ids.begin(), ids.end(), [&](std::int64_t id) {
    return id >= 0 && id < p.experts && p.rank_of(static_cast<int>(id)) == station_->rank();
  }));
}

MaskedIds RankLayer::take_masked_ids() const {
  const Call& call = station_->last_call();
  MemoryKind& kind = station_->kind();
  auto* const counter = call.local(call.workspace.bad_ids);
  const std::uint32_t count = kind.observe(counter);
  if (count == 0) return {};
  const std::uint64_t pair = kind.copy_of(call.local(call.workspace.first_bad_pair));
  kind.fill(counter, 0, sizeof *counter);
  const auto topk = static_cast<std::uint64_t>(station_->problem().topk);
  return {.count = count,
          .token = static_cast<std::int64_t>(pair / topk),
          .slot = static_cast<int>(pair % topk)};
}

}  // namespace megamoe
