#include "runtime/gpu/gpu_rank_machine.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "protocol/trace.hpp"
#include "runtime/gpu/cards.hpp"
#include "runtime/gpu/cuda_call.hpp"
#include "runtime/gpu/process_cards.hpp"
#include "runtime/gpu/window_memory.hpp"
#include "runtime/group/agree.hpp"

namespace megamoe {
namespace {

/// The rank's card and SMs as it asks for them; refused where there are none such.
CardWish wish_of(const GpuKind& kind, const LayerOptions& options, const RankPlace& place) {
  const std::vector<CardFacts> cards = visible_cards();
  const auto count = static_cast<int>(cards.size());
  require(options.device >= -1 && options.device < count,
          ErrorCode::kInvalidArgument,
          "device is ",
          options.device,
          "; this process sees cards 0 to ",
          count - 1);
  const int usual = place.is_in_process ? card_of_rank(place.rank, place.ranks, count)
                                        : card_of_process(place.rank, place.ranks, count);
  const int card = options.device >= 0 ? options.device : usual;
  const CardFacts& facts = cards[static_cast<std::size_t>(card)];
  require(kind.runs_on(facts),
          ErrorCode::kUnsupportedMachine,
          card_text(card, facts),
          " has compute capability ",
          facts.major,
          ".",
          facts.minor,
          "; machine ",
          kind.name,
          " needs ",
          kind.major,
          ".",
          kind.minor);
  require(options.num_sms >= 0 && options.num_sms <= facts.sms,
          ErrorCode::kInvalidArgument,
          "num_sms is ",
          options.num_sms,
          "; ",
          card_text(card, facts),
          " has 1 to ",
          facts.sms,
          ", and 0 asks for a share");
  return {.card = card, .num_sms = options.num_sms};
}

CardFacts facts_of(int card) {
  return visible_cards()[static_cast<std::size_t>(card)];
}

/// Of what is asked for: the rank may get less of a card that it shares.
Limits limits_of_wish(const GpuKind& kind, const CardWish& wish, const LayerOptions& options) {
  return limits_of_kind(kind, wish.num_sms > 0 ? wish.num_sms : facts_of(wish.card).sms, options);
}

/// What a plan may take of a card: heights of tiles that this build has no kernels for are none.
std::vector<TileRule> tiles_of(const GpuKind& kind, const KernelSet& kernels, const Limits& all) {
  std::vector<TileRule> tiles =
      tiles_with(all.tiles, [&](int block_m) { return kernels.has_kernel(block_m); });
  require(!tiles.empty(),
          ErrorCode::kUnsupportedMachine,
          "this build has no kernels of machine ",
          kind.name,
          " for these numerics");
  return tiles;
}

/// Cards of the ranks, each once, in order.
std::vector<int> cards_of(const std::vector<CardWish>& wishes) {
  std::vector<int> cards;
  for (const CardWish& wish : wishes)
    cards.push_back(wish.card);
  std::sort(cards.begin(), cards.end());
  cards.erase(std::unique(cards.begin(), cards.end()), cards.end());
  return cards;
}

void require_peers(const std::vector<int>& cards) {
  for (const int card : cards)
    for (const int other : cards) {
      if (card == other) continue;
      const std::string why_not = why_not_peers(card, other);
      require(why_not.empty(),
              ErrorCode::kUnsupportedMachine,
              "the ranks are on ",
              cards.size(),
              " cards that can't work together: ",
              why_not);
    }
}

/// Ranks of one process reach each other's plain memory; processes need windows.
std::unique_ptr<DeviceMemory> memory_on(int card, const RankPlace& place) {
  if (place.is_in_process) return std::make_unique<DeviceMemory>(card);
  return make_window_memory(card);
}

constexpr std::uint64_t kFlushBytes = std::uint64_t{256} << 20;  // five times the L2 cache

/// Events around calls.
class CallClock {
 public:
  explicit CallClock(int calls) : events_(2 * static_cast<std::size_t>(calls)) {
    for (cudaEvent_t& event : events_)
      require_cuda(cudaEventCreate(&event), "cudaEventCreate");
  }
  ~CallClock() {
    for (cudaEvent_t event : events_)
      cudaEventDestroy(event);
  }
  CallClock(const CallClock&) = delete;
  CallClock& operator=(const CallClock&) = delete;

  int calls() const { return static_cast<int>(events_.size() / 2); }
  void start(int call, cudaStream_t stream) { record(2 * call, stream); }
  void stop(int call, cudaStream_t stream) { record(2 * call + 1, stream); }
  double microseconds(int call) const {
    float milliseconds = 0;
    require_cuda(cudaEventElapsedTime(&milliseconds, event(2 * call), event(2 * call + 1)),
                 "cudaEventElapsedTime");
    return static_cast<double>(milliseconds) * 1e3;
  }

 private:
  cudaEvent_t event(int index) const { return events_[static_cast<std::size_t>(index)]; }
  void record(int index, cudaStream_t stream) {
    require_cuda(cudaEventRecord(event(index), stream), "cudaEventRecord");
  }

  std::vector<cudaEvent_t> events_;
};

double milliseconds(std::uint64_t from_ns, std::uint64_t to_ns) {
  return to_ns > from_ns ? static_cast<double>(to_ns - from_ns) * 1e-6 : 0.0;
}

}  // namespace

Limits GpuRankMachine::limits_for(const GpuKind& kind, const LayerOptions& options) {
  return limits_of_wish(kind, wish_of(kind, options, {}), options);
}

GpuRankMachine::GpuRankMachine(const GpuKind& kind,
                               const LayerOptions& options,
                               const RankPlace& place)
    : kind_(kind),
      kernels_(make_kernel_set(kind, options)),
      wish_(wish_of(kind, options, place)),
      limits_(limits_of_wish(kind, wish_, options)),
      memory_(memory_on(wish_.card, place)),
      times_(memory_->own_buffer(sizeof(gpu::WorkerTimes) *
                                 static_cast<std::size_t>(facts_of(wish_.card).sms))) {
  tiles_ = tiles_of(kind_, *kernels_, limits_);
  limits_.tiles = tiles_;
  const CardScope scope(wish_.card);
  kernels_->load(facts_of(wish_.card));
  require_cuda(cudaStreamCreateWithFlags(&own_stream_, cudaStreamNonBlocking),
               "cudaStreamCreateWithFlags");
  require_cuda(cudaEventCreateWithFlags(&last_call_, cudaEventDisableTiming),
               "cudaEventCreateWithFlags");
}

GpuRankMachine::~GpuRankMachine() {
  cudaEventDestroy(last_call_);
  cudaStreamDestroy(own_stream_);
}

std::string GpuRankMachine::name() const {
  return kernels_->name(facts_of(wish_.card));
}

std::unique_ptr<MachineWeights> GpuRankMachine::make_weights(const Problem& problem) const {
  const CardScope scope(wish_.card);
  return kernels_->make_weights(problem, *memory_);
}

void GpuRankMachine::join(Link& link, std::uint64_t timeout_ms) {
  share_ = share_of_card(link, timeout_ms);
  limits_.workers = workers_of(share_);
}

/// Collective.
CardShare GpuRankMachine::share_of_card(Link& link, std::uint64_t timeout_ms) const {
  if (!link.is_in_process()) {
    require_own_cards(link, wish_.card, timeout_ms);
    return {.num_sms = wish_.num_sms > 0 ? wish_.num_sms : facts_of(wish_.card).sms};
  }
  std::vector<CardWish> wishes;
  for (const std::string& text :
       link.gather({"the placing of ranks on cards", timeout_ms}, text_of(wish_)))
    wishes.push_back(card_wish_of(text));
  // All ranks see the same cards, so all come to the same end here.
  std::vector<int> sms;
  for (const CardFacts& card : visible_cards())
    sms.push_back(card.sms);
  const std::vector<CardShare> shares = share_cards(wishes, sms);
  for (const CardShare& share : shares)
    static_cast<void>(workers_of(share));  // one that is too small is refused on every rank
  const std::vector<int> cards = cards_of(wishes);
  require_peers(cards);
  agree(link, {"the opening of peer access", timeout_ms}, [&] {
    enable_peer_access(wish_.card, cards);
    return std::string();
  });
  return shares[static_cast<std::size_t>(link.rank())];
}

/// SMs that a share comes to. Throws Error(kInvalidArgument) for fewer than the machine needs.
int GpuRankMachine::workers_of(const CardShare& share) const {
  return limits_of_kind(kind_, share.num_sms, {}).workers;
}

void GpuRankMachine::require_stream(const CallOrder& order) const {
  require(!order.stream || *order.stream != nullptr || share_.is_alone,
          ErrorCode::kInvalidArgument,
          "stream is null, CUDA's default stream; ranks that share a card need a stream each");
}

cudaStream_t GpuRankMachine::stream_of(const CallOrder& order) const {
  return order.stream ? static_cast<cudaStream_t>(*order.stream) : own_stream_;
}

void GpuRankMachine::launch(const Call& call,
                            const Plan& plan,
                            const MachineWeights& weights,
                            std::uint64_t timeout_ms,
                            cudaStream_t stream) {
  kernels_->launch({.call = call,
                    .weights = weights,
                    .workers = plan.workers,
                    .options = {.timeout_ms = timeout_ms,
                                .times = reinterpret_cast<gpu::WorkerTimes*>(times_->base())}},
                   stream);
}

void GpuRankMachine::begin(const Call& call,
                           const Plan& plan,
                           const MachineWeights& weights,
                           const CallOrder& order) {
  const CardScope scope(wish_.card);
  cudaStream_t stream = stream_of(order);
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  require_cuda(cudaStreamIsCapturing(stream, &capture), "cudaStreamIsCapturing");
  const bool is_captured = capture != cudaStreamCaptureStatusNone;
  // Calls share memory: one on another stream waits for the last one. A graph's calls are in the
  // order that its owner gives them.
  if (!is_captured && has_called_ && last_stream_ != stream)
    require_cuda(cudaStreamWaitEvent(stream, last_call_), "cudaStreamWaitEvent");
  launch(call, plan, weights, order.timeout_ms, stream);
  if (is_captured) return;
  require_cuda(cudaEventRecord(last_call_, stream), "cudaEventRecord");
  last_stream_ = stream;
  has_called_ = true;
}

void GpuRankMachine::finish(const CallOrder& order) {
  const CardScope scope(wish_.card);
  kernels_->require_good(cudaStreamSynchronize(stream_of(order)),
                         "waiting for the calls of a stream");
}

void GpuRankMachine::finish_all() {
  const CardScope scope(wish_.card);
  kernels_->require_good(cudaEventSynchronize(last_call_), "waiting for the last call");
}

std::vector<double> GpuRankMachine::time_calls(const Call& call,
                                               const Plan& plan,
                                               const MachineWeights& weights,
                                               std::uint64_t timeout_ms,
                                               const TimedCalls& what) {
  const CardScope scope(wish_.card);
  finish_all();
  // All calls are on the stream before the first is waited for: each begins as the ranks end the
  // last one, together, and not when the host gets round to it.
  CallClock clock(what.warm_up + what.calls);
  const std::shared_ptr<Segment> flush =
      what.flushes_caches ? memory_->own_buffer(kFlushBytes) : nullptr;
  for (int i = 0; i < clock.calls(); ++i) {
    if (flush != nullptr)
      require_cuda(cudaMemsetAsync(flush->base(), i, kFlushBytes, own_stream_), "a flush");
    clock.start(i, own_stream_);
    launch(call, plan, weights, timeout_ms, own_stream_);
    clock.stop(i, own_stream_);
  }
  kernels_->require_good(cudaStreamSynchronize(own_stream_), "waiting for timed calls");
  std::vector<double> microseconds;
  for (int i = what.warm_up; i < clock.calls(); ++i)
    microseconds.push_back(clock.microseconds(i));
  return microseconds;
}

PhaseTimes GpuRankMachine::times() const {
  const auto t = memory_->copy_of(reinterpret_cast<const gpu::WorkerTimes*>(times_->base()));
  const auto at = [&](Milestone milestone) { return t.milestones[static_cast<int>(milestone)]; };
  return {.route = milliseconds(t.start, at(Milestone::kRouted)),
          .compute = milliseconds(at(Milestone::kRouted), at(Milestone::kComputed)),
          .meet = milliseconds(at(Milestone::kComputed), at(Milestone::kMet)),
          .combine = milliseconds(at(Milestone::kMet), at(Milestone::kCombined)),
          .finish = milliseconds(at(Milestone::kCombined), t.end),
          .total = milliseconds(t.start, t.end)};
}

}  // namespace megamoe
