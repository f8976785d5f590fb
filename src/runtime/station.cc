#include "runtime/station.hpp"

#include <chrono>
#include <thread>
#include <utility>

#include "base/check.hpp"
#include "plan/choose.hpp"
#include "runtime/configuration.hpp"
#include "runtime/deadline.hpp"
#include "runtime/faults.hpp"
#include "runtime/group/agree.hpp"

namespace megamoe {
namespace {

constexpr std::uint64_t kBarriersOfCall = 3;
constexpr std::uint64_t kDepartureMs = 1000;

}  // namespace

PlanRequest plan_request(const LayerOptions& options) {
  PlanRequest request{.pool_rows = options.pool_rows, .byte_budget = options.memory_budget};
  if (options.expected_tokens > 0) request.expected_tokens = options.expected_tokens;
  return request;
}

Station::Turn::Turn(Station& station) : station_(station) {
  require(!station.is_taken_.test_and_set(std::memory_order_acquire),
          ErrorCode::kInvalidArgument,
          "another call is under way on this layer, or on a sibling that shares its memory; there "
          "can be one at a time");
}

Station::Station(std::shared_ptr<Link> link, LayerOptions options)
    : link_(std::move(link)), options_(std::move(options)) {}

std::shared_ptr<Station> Station::open(const std::shared_ptr<Link>& link,
                                       const Problem& problem,
                                       const LayerOptions& options) {
  std::shared_ptr<Station> station(new Station(link, options));
  const auto texts = agree(*link, {"the making of a layer", options.timeout_ms}, [&] {
    return station->configure(problem);
  });
  require_same(texts, "the layer");
  station->machine_->join(*link, options.timeout_ms);
  station->settle_plan();
  const Workspace& w = station->workspace_;
  station->memory_ = std::make_unique<SymmetricMemory>(
      SymmetricMemory::create(*link,
                              station->kind(),
                              {.bytes = w.bytes,
                               .zeroed_bytes = w.zeroed_bytes,
                               .poison = options.poison,
                               .adopted = options.memory,
                               .timeout_ms = options.timeout_ms}));
  station->watch_ = link->watch([raw = station.get()](int rank) { raw->note_death(rank); });
  return station;
}

Station::~Station() {
  watch_.reset();
  if (memory_ == nullptr) return;
  try {
    machine_->finish_all();
    depart();
  } catch (const Error&) {
    // The card is lost, and with it the words that peers watch. Whoever waited for a call was told.
  }
}

/// This rank's view of the layer, without memory yet; its configuration as text.
std::string Station::configure(const Problem& problem) {
  validate(problem);
  require(problem.ranks == link_->ranks(),
          ErrorCode::kInvalidArgument,
          "ranks of the problem is ",
          problem.ranks,
          "; the group has ",
          link_->ranks());
  require(options_.timeout_ms <= kMaxTimeoutMs,
          ErrorCode::kInvalidArgument,
          "timeout_ms is ",
          options_.timeout_ms,
          "; it must be at most ",
          kMaxTimeoutMs,
          ", or 0 for no bound");
  machine_ = make_machine(
      options_, {.rank = rank(), .ranks = problem.ranks, .is_in_process = link_->is_in_process()});
  machine_name_ = machine_->name();
  plan_ = choose_plan(problem, machine_->limits(), plan_request(options_));
  workspace_ = workspace_of(plan_, machine_->limits());
  validate(options_.memory, problem.ranks, workspace_.bytes);
  if (options_.memory.bases.empty()) kind().require_room(problem.ranks, workspace_.bytes);
  return layer_configuration(problem, workspace_, machine_name_).text();
}

/// Workers may be others than were thought before the ranks joined; the layout is the same.
void Station::settle_plan() {
  PlanRequest again = plan_request(options_);
  again.pool_rows = workspace_.pool_rows;
  if (machine_->limits().workers != plan_.workers)
    plan_ = choose_plan(plan_.problem, machine_->limits(), again);
}

const Plan& Station::plan_for(int num_tokens, int expected) {
  if (expected == 0)
    expected = options_.expected_tokens > 0 ? options_.expected_tokens : num_tokens;
  if (expected == plan_.expected_tokens) return plan_;
  PlanRequest again = plan_request(options_);
  again.expected_tokens = expected;
  again.pool_rows = workspace_.pool_rows;
  plan_ = choose_plan(plan_.problem, machine_->limits(), again);
  return plan_;
}

void Station::require_usable() const {
  require(failure_.empty(),
          ErrorCode::kRunFailed,
          "the layer must be reset() before its next call, as its last one failed: ",
          failure_);
}

void Station::require_peers() {
  for (int rank = 0; rank < link_->ranks(); ++rank)
    if (is_dead_[static_cast<std::size_t>(rank)].load())
      kind().set_abort(local(workspace_.abort), {AbortReason::kDied, rank});
  const Abort abort = Abort::of(kind().observe(local(workspace_.abort)));
  if (abort.reason != AbortReason::kNone)
    fail(sentence("rank ", rank(), ": before this call, ", abort_sentence(abort)));
}

void Station::begin_call(const Call& call, const std::function<void()>& work) {
  failure_ = "an exception cut it short";
  if (options_.poison) {
    machine_->finish_all();
    // What peers write only after this rank has entered barrier 1.
    const std::uint64_t from = workspace_.combine.offset;
    kind().fill(memory_->peers().base[rank()] + from, kPoison, workspace_.bytes - from);
  }
  last_call_ = call;
  try {
    work();
  } catch (...) {
    stop_peers();
    throw;
  }
  failure_.clear();
}

void Station::stop_peers() {
  for (int peer = 0; peer < link_->ranks(); ++peer)
    kind().set_abort(memory_->peers().on(peer, workspace_.abort).raw(),
                     {AbortReason::kStopped, rank()});
}

void Station::require_good_calls() {
  if (kind().observe(local(workspace_.fault_claims)) != 0) fail_by_fault_record();
  Refusal* kept = local(workspace_.kept_refusal);
  const Refusal refusal = kind().copy_of(kept);
  if (refusal.kind == RefusalKind::kNone) return;
  kind().fill(kept, 0, sizeof refusal);
  throw Error(ErrorCode::kInvalidArgument, refusal_sentence(refusal, problem()));
}

void Station::fail(const std::string& why) {
  failure_ = why;
  throw Error(ErrorCode::kRunFailed, why);
}

void Station::fail_by_fault_record() {
  const RankArrival* arrivals = local(workspace_.arrival);
  const std::uint64_t mine = kind().observe(arrivals + rank());
  std::vector<int> late;
  for (int rank = 0; rank < link_->ranks(); ++rank)
    if (kind().observe(arrivals + rank) < mine) late.push_back(rank);
  fail(fault_sentence(kind().copy_of(local(workspace_.fault)), late, options_.timeout_ms));
}

void Station::reset() {
  machine_->finish_all();
  // Everybody has left the failed call when this meeting is over, and nobody enters the next one
  // before the second is.
  link_->gather({"the reset of a layer", options_.timeout_ms}, "");
  auto* const words = reinterpret_cast<std::uint32_t*>(memory_->peers().base[rank()]);
  kind().zero(words, workspace_.zeroed_bytes / sizeof *words);
  link_->gather({"the end of a layer's reset", options_.timeout_ms}, "");
  failure_.clear();
}

/// A rank that has entered the last barrier of the call under way has done all that this rank needs
/// of it. So only one that has not makes the call fail; between calls that is any, for the next.
void Station::note_death(int rank) {
  is_dead_[static_cast<std::size_t>(rank)].store(true);
  const std::uint64_t passed = kind().observe(local(workspace_.gate));
  const std::uint64_t end_of_call = passed / kBarriersOfCall * kBarriersOfCall + kBarriersOfCall;
  if (kind().observe(local(workspace_.arrival) + rank) < end_of_call)
    kind().set_abort(local(workspace_.abort), {AbortReason::kDied, rank});
}

/// Ranks that have finished every call that this one took part in are told not to wait for it in
/// another. One that is still in the last barrier needs nothing more, and is left alone until it is
/// through. Who leaves because of another passes on that one's name.
void Station::depart() {
  const Peers& peers = memory_->peers();
  const Abort obeyed = Abort::of(kind().observe(local(workspace_.abort)));
  const Abort cause =
      obeyed.reason != AbortReason::kNone ? obeyed : Abort{AbortReason::kStopped, rank()};
  const std::uint64_t passed = kind().observe(local(workspace_.gate));
  const Deadline deadline(kDepartureMs);
  for (int peer = 0; peer < peers.ranks; ++peer) {
    if (peer == rank() || is_dead_[static_cast<std::size_t>(peer)].load()) continue;
    const Gate* gate = peers.on(peer, workspace_.gate).raw();
    AbortWord* abort = peers.on(peer, workspace_.abort).raw();
    while (failure_.empty() && kind().observe(gate) < passed && kind().observe(abort) == 0 &&
           !deadline.passed())
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    kind().set_abort(abort, cause);
  }
}

}  // namespace megamoe
