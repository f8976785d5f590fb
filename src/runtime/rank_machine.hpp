#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "megamoe/call_report.hpp"
#include "megamoe/layer_options.hpp"
#include "megamoe/plan.hpp"
#include "megamoe/weights.hpp"
#include "plan/limits.hpp"
#include "protocol/call.hpp"
#include "runtime/memory/memory_kind.hpp"

namespace megamoe {

/// A rank's experts in a machine's own layout.
class MachineWeights {
 public:
  virtual ~MachineWeights() = default;
  /// Packs a local expert from the first expert of `view`, which is not needed afterwards. Throws
  /// Error(kInvalidArgument) for values that the machine's numerics can't hold.
  virtual void pack(int local_expert, const WeightView& view) = 0;
  virtual std::uint64_t bytes() const = 0;
};

/// Whose machine it is.
struct RankPlace {
  int rank = 0;
  int ranks = 1;
  bool is_in_process = true;  ///< all ranks are threads of this process
};

/// How a call is begun and awaited.
struct CallOrder {
  std::uint64_t timeout_ms = 0;
  /// A GPU's: the caller's cudaStream_t; absent: a stream of the machine's own.
  std::optional<void*> stream = std::nullopt;
};

/// What executes a rank's part of a call. One implementation a machine; chosen at run time. Calls
/// follow each other in the order in which they were begun.
class RankMachine {
 public:
  virtual ~RankMachine() = default;

  /// What decides the bits of its results, such as "cpu/avx2"; the same on all ranks.
  virtual std::string name() const = 0;
  /// The workers among them are final once the ranks have joined.
  virtual const Limits& limits() const = 0;
  /// Where its symmetric memory lies.
  virtual MemoryKind& memory() = 0;
  /// Whether it masks ids past the last expert and counts them; else the host refuses them.
  virtual bool masks_bad_ids() const = 0;
  virtual std::unique_ptr<MachineWeights> make_weights(const Problem& problem) const = 0;

  /// Collective, once, by ranks with the same machine: they settle who works on what. Throws the
  /// same Error on every rank where they can't work together.
  virtual void join(Link& link, std::uint64_t timeout_ms) = 0;

  /// Throws Error(kInvalidArgument) for a stream that calls can't be put on; before anything is
  /// begun.
  virtual void require_stream(const CallOrder& order) const = 0;
  /// Begins one call, collective over ranks, with weights of this machine's: when it returns, the
  /// call is done or goes on by itself. How it ended is in symmetric memory.
  virtual void begin(const Call& call,
                     const Plan& plan,
                     const MachineWeights& weights,
                     const CallOrder& order) = 0;
  /// Returns when what was begun on the order's stream is over.
  virtual void finish(const CallOrder& order) = 0;
  /// Returns when everything that begin() began is over.
  virtual void finish_all() = 0;
  /// Of the last call that is over.
  virtual PhaseTimes times() const = 0;

  /// Makes the same call several times and says how long each took by the machine's own clock;
  /// returns when they are over.
  virtual std::vector<double> time_calls(const Call& call,
                                         const Plan& plan,
                                         const MachineWeights& weights,
                                         std::uint64_t timeout_ms,
                                         const TimedCalls& what) = 0;
  /// The card that it works on, by CUDA's number; -1: the host.
  virtual int device() const = 0;
};

/// The machine that the options name, for a rank on this computer. Throws Error: kInvalidArgument
/// for an unknown name or a wrong option, kUnsupportedMachine for one that is not here.
std::unique_ptr<RankMachine> make_machine(const LayerOptions& options, const RankPlace& place);

/// Why `ranks` ranks that are processes, started from here, can't have that machine; empty when
/// they can. May start the CUDA driver in this process, which must not fork afterwards.
std::string why_no_rank_processes(const LayerOptions& options, int ranks);

/// Its name as options give it: what auto stands for.
std::string name_of_machine(const LayerOptions& options, const RankPlace& place);

/// Its limits, without making it.
Limits limits_of_machine(const LayerOptions& options, const RankPlace& place);

}  // namespace megamoe
