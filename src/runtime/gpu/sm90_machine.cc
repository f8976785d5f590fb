#include "runtime/gpu/sm90_machine.hpp"

#include <algorithm>

#include "base/check.hpp"
#include "protocol/trace.hpp"
#include "runtime/gpu/cards.hpp"
#include "runtime/gpu/cuda_call.hpp"
#include "runtime/gpu/gpu_machine.hpp"
#include "runtime/gpu/process_cards.hpp"
#include "runtime/gpu/sm90_limits.hpp"
#include "runtime/gpu/sm90_weights.hpp"
#include "runtime/gpu/window_memory.hpp"
#include "runtime/group/agree.hpp"

namespace megamoe {
namespace {

sm90::Operands operands_of(const LayerOptions& options) {
  return options.numerics == "exact" ? sm90::Operands::kBfloat16 : sm90::Operands::kFloat8;
}

/// The rank's card and SMs as it asks for them; refused where there are none such.
CardWish wish_of(const LayerOptions& options, const RankPlace& place) {
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
  require(facts.is_hopper(),
          ErrorCode::kUnsupportedMachine,
          card_text(card, facts),
          " has compute capability ",
          facts.major,
          ".",
          facts.minor,
          "; machine sm90 needs 9.0");
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

int sms_of(int card) {
  return visible_cards()[static_cast<std::size_t>(card)].sms;
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
  return place.is_in_process ? std::make_unique<DeviceMemory>(card) : make_window_memory(card);
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

std::string why_no_gpu_machine(const std::string& name) {
  if (name != "sm90")
    return sentence("machine ", name, " is not in this build: it has cpu and sm90");
  if (const std::string why = why_no_cards(); !why.empty())
    return sentence("machine sm90 finds no GPU here: ", why);
  for (const CardFacts& card : visible_cards())
    if (card.is_hopper()) return {};
  return "machine sm90 finds no card of compute capability 9.0 (Hopper) here";
}

std::string why_no_gpu_processes(int ranks) {
  const std::string why_no = why_no_windows();
  return why_no.empty() ? why_not_a_card_each(ranks, static_cast<int>(visible_cards().size()))
                        : why_no;
}

std::unique_ptr<RankMachine> make_gpu_machine(const std::string&,
                                              const LayerOptions& options,
                                              const RankPlace& place) {
  return std::make_unique<Sm90Machine>(options, place);
}

CardSurvey survey_cards() {
  CardSurvey survey{.versions = versions_text(), .cards = {}};
  const std::vector<CardFacts> cards = visible_cards();
  for (std::size_t i = 0; i < cards.size(); ++i) {
    const CardFacts& facts = cards[i];
    Card card{.name = facts.name,
              .sms = facts.sms,
              .memory = facts.memory,
              .capability = sentence(facts.major, ".", facts.minor),
              .unreachable = {}};
    for (std::size_t other = 0; other < cards.size(); ++other)
      if (other != i && !why_not_peers(static_cast<int>(i), static_cast<int>(other)).empty())
        card.unreachable.push_back(static_cast<int>(other));
    survey.cards.push_back(card);
  }
  return survey;
}

Limits limits_of_gpu_machine(const std::string&, const LayerOptions& options) {
  return Sm90Machine::limits_for(options);
}

Limits Sm90Machine::limits_for(const LayerOptions& options) {
  const CardWish wish = wish_of(options, {});
  return sm90_limits(wish.num_sms > 0 ? wish.num_sms : sms_of(wish.card), operands_of(options));
}

Sm90Machine::Sm90Machine(const LayerOptions& options, const RankPlace& place)
    : operands_(operands_of(options)),
      wish_(wish_of(options, place)),
      limits_(sm90_limits(sms_of(wish_.card), operands_)),
      memory_(memory_on(wish_.card, place)),
      times_(memory_->own_buffer(sizeof(gpu::WorkerTimes) *
                                 static_cast<std::size_t>(sms_of(wish_.card)))) {
  const CardScope scope(wish_.card);
  // Loading a kernel when it is first launched may wait for kernels that run, which may wait for
  // it.
  sm90::load_kernels(operands_);
  require_cuda(cudaStreamCreateWithFlags(&own_stream_, cudaStreamNonBlocking),
               "cudaStreamCreateWithFlags");
  require_cuda(cudaEventCreateWithFlags(&last_call_, cudaEventDisableTiming),
               "cudaEventCreateWithFlags");
}

Sm90Machine::~Sm90Machine() {
  cudaEventDestroy(last_call_);
  cudaStreamDestroy(own_stream_);
}

std::string Sm90Machine::name() const {
  return operands_ == sm90::Operands::kFloat8 ? "sm90/fast" : "sm90/exact";
}

std::unique_ptr<MachineWeights> Sm90Machine::make_weights(const Problem& problem) const {
  return std::make_unique<Sm90Weights>(problem, operands_, *memory_);
}

void Sm90Machine::join(Link& link, std::uint64_t timeout_ms) {
  share_ = share_of_card(link, timeout_ms);
  limits_.workers = share_.num_sms;
}

/// Collective.
CardShare Sm90Machine::share_of_card(Link& link, std::uint64_t timeout_ms) const {
  if (!link.is_in_process()) {
    require_own_cards(link, wish_.card, timeout_ms);
    return {.num_sms = wish_.num_sms > 0 ? wish_.num_sms : sms_of(wish_.card)};
  }
  std::vector<CardWish> wishes;
  for (const std::string& text :
       link.gather({"the placing of ranks on cards", timeout_ms}, text_of(wish_)))
    wishes.push_back(card_wish_of(text));
  // All ranks see the same cards, so all come to the same end here.
  std::vector<int> sms;
  for (const CardFacts& card : visible_cards())
    sms.push_back(card.sms);
  const CardShare share = share_cards(wishes, sms)[static_cast<std::size_t>(link.rank())];
  const std::vector<int> cards = cards_of(wishes);
  require_peers(cards);
  agree(link, {"the opening of peer access", timeout_ms}, [&] {
    enable_peer_access(wish_.card, cards);
    return std::string();
  });
  return share;
}

void Sm90Machine::require_stream(const CallOrder& order) const {
  require(!order.stream || *order.stream != nullptr || share_.is_alone,
          ErrorCode::kInvalidArgument,
          "stream is null, CUDA's default stream; ranks that share a card need a stream each");
}

cudaStream_t Sm90Machine::stream_of(const CallOrder& order) const {
  return order.stream ? static_cast<cudaStream_t>(*order.stream) : own_stream_;
}

void Sm90Machine::launch(const Call& call,
                         const Plan& plan,
                         const MachineWeights& weights,
                         std::uint64_t timeout_ms,
                         cudaStream_t stream) {
  // The only weights that this machine makes.
  const auto& packed = static_cast<const Sm90Weights&>(weights);
  const sm90::KernelArgs args{
      .linear1 = packed.linear1(),
      .linear2 = packed.linear2(),
      .call = call,
      .options = {.timeout_ms = timeout_ms,
                  .times = reinterpret_cast<gpu::WorkerTimes*>(times_->base())}};
  sm90::launch(args, operands_, plan.workers, sm90::CoResidence::kByDevice, stream);
}

void Sm90Machine::begin(const Call& call,
                        const Plan& plan,
                        const MachineWeights& weights,
                        const CallOrder& order) {
  const CardScope scope(wish_.card);
  const cudaStream_t stream = stream_of(order);
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

void Sm90Machine::finish(const CallOrder& order) {
  const CardScope scope(wish_.card);
  require_cuda(cudaStreamSynchronize(stream_of(order)), "waiting for the calls of a stream");
}

void Sm90Machine::finish_all() {
  const CardScope scope(wish_.card);
  require_cuda(cudaEventSynchronize(last_call_), "waiting for the last call");
}

std::vector<double> Sm90Machine::time_calls(const Call& call,
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
  require_cuda(cudaStreamSynchronize(own_stream_), "waiting for timed calls");
  std::vector<double> microseconds;
  for (int i = what.warm_up; i < clock.calls(); ++i)
    microseconds.push_back(clock.microseconds(i));
  return microseconds;
}

PhaseTimes Sm90Machine::times() const {
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
