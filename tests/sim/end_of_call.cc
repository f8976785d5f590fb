#include "sim/end_of_call.hpp"

#include <algorithm>
#include <atomic>

#include "base/check.hpp"
#include "sim/rank_memory.hpp"

namespace megamoe::sim {
namespace {

template <class T>
bool is_zero(const T* words, std::int64_t count) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(words);
  for (std::size_t i = 0; i < static_cast<std::size_t>(count) * sizeof(T); ++i)
    if (bytes[i] != 0) return false;
  return true;
}

std::string wrong_words(const Call& call, std::uint64_t first_epoch) {
  const Workspace& w = call.workspace;
  if (!is_zero(call.local(w.workers_arrived), 1)) return "workers_arrived is not zero";
  if (std::atomic_ref(call.local(w.abort)->value).load() != 0) return "the abort word is set";
  if (!is_zero(call.local(w.fault_claims), 1)) return "a fault was recorded";
  if (call.local(w.gate)->value != first_epoch + 3) return "the gate did not go up by three";
  for (int peer = 0; peer < call.problem.ranks; ++peer) {
    const std::uint64_t epoch = std::atomic_ref(call.local(w.arrival)[peer].value).load();
    // A peer may be in its next call already, before that one's second barrier.
    if (epoch < first_epoch + 3 || epoch > first_epoch + 4)
      return sentence(
          "arrival of rank ", peer, " is ", epoch - first_epoch, " after three barriers");
  }
  return {};
}

std::string wrong_counts(const Call& call, const Expectation& expectation) {
  const Problem& p = call.problem;
  for (int local = 0; local < p.experts_per_rank(); ++local) {
    const int expert = call.peers.rank * p.experts_per_rank() + local;
    const auto rows = static_cast<int>(call.local(call.workspace.expert_rows)[local]);
    if (rows != expectation.rows(expert))
      return sentence("the host is told ",
                      rows,
                      " rows of expert ",
                      expert,
                      "; expected ",
                      expectation.rows(expert));
  }
  const std::uint32_t bad = call.local(call.workspace.bad_ids)->value;
  const std::vector<int>& expected = expectation.bad_pairs(call.peers.rank);
  if (bad != expected.size())
    return sentence(bad, " bad ids are counted; expected ", expected.size());
  if (bad == 0) return {};
  const auto first = static_cast<int>(*call.local(call.workspace.first_bad_pair));
  if (std::find(expected.begin(), expected.end(), first) != expected.end()) return {};
  return sentence("pair ", first, " is blamed for a bad id");
}

std::string wrong_verdict(const Refusal& verdict, const Refusal& expected) {
  const bool is_right = verdict.kind == expected.kind && verdict.rank == expected.rank &&
                        verdict.token == expected.token && verdict.slot == expected.slot &&
                        verdict.value == expected.value;
  if (is_right) return {};
  return sentence("the verdict is kind ",
                  static_cast<int>(verdict.kind),
                  " of rank ",
                  verdict.rank,
                  ", token ",
                  verdict.token,
                  "; expected kind ",
                  static_cast<int>(expected.kind),
                  " of rank ",
                  expected.rank,
                  ", token ",
                  expected.token);
}

std::string wrong_output(const Call& call,
                         const Expectation& expectation,
                         const std::vector<Bfloat16>& output) {
  constexpr std::uint16_t kPoisonBits = RankMemory::kPoison * 0x101;
  std::vector<Bfloat16> expected;
  if (!expectation.is_refused()) expected = expectation.output(call.peers.rank);
  const auto hidden = static_cast<std::size_t>(call.problem.hidden);
  for (std::size_t i = 0; i < output.size(); ++i) {
    const std::uint16_t bits = i < expected.size() ? expected[i].bits : kPoisonBits;
    if (output[i].bits != bits)
      return sentence(
          "y[", i / hidden, "][", i % hidden, "] has bits ", output[i].bits, "; expected ", bits);
  }
  return {};
}

}  // namespace

std::string left_behind(const Call& call) {
  const Workspace& w = call.workspace;
  const Problem& p = call.problem;
  const std::int64_t blocks = w.pool_rows / kSmallestBlockM;
  if (!is_zero(call.local(w.sent), p.experts)) return "sent is not zero";
  if (!is_zero(call.local(w.received), std::int64_t{p.ranks} * p.experts_per_rank()))
    return "received is not zero";
  if (!is_zero(call.local(w.received_sum), p.experts_per_rank())) return "received_sum is not zero";
  if (!is_zero(call.local(w.arrived), blocks)) return "arrived is not zero";
  if (!is_zero(call.local(w.ready), blocks)) return "ready is not zero";
  if (!is_zero(call.local(w.finished), blocks)) return "finished is not zero";
  for (int rank = 0; rank < p.ranks; ++rank)
    if (call.local(w.refusals)[rank].kind != RefusalKind::kNone)
      return sentence("the refusal of rank ", rank, " stands");
  return {};
}

std::string wrong_result(const Call& call,
                         const Expectation& expectation,
                         std::uint64_t first_epoch,
                         const std::vector<Bfloat16>& output) {
  std::string wrong = wrong_words(call, first_epoch);
  if (wrong.empty()) wrong = wrong_counts(call, expectation);
  if (wrong.empty())
    wrong = wrong_verdict(*call.local(call.workspace.verdict), expectation.verdict());
  if (wrong.empty()) wrong = wrong_output(call, expectation, output);
  return wrong.empty() ? wrong : sentence("rank ", call.peers.rank, ": ", wrong);
}

}  // namespace megamoe::sim
