#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "megamoe/card.hpp"
#include "megamoe/layer_options.hpp"

namespace megamoe {

/// Whether something works here, and if not, why not.
struct Ability {
  std::string name;     ///< "cpu", "sm90", "processes"
  std::string why_not;  ///< empty: it works

  bool works() const { return why_not.empty(); }
};

/// What this library finds of the computer that it runs on.
struct Computer {
  int cores = 1;                              ///< that this process may use
  std::vector<std::string> instruction_sets;  ///< of the CPU machine, the best last
  std::uint64_t available_memory = 0;         ///< bytes
  std::string memory_bound;                   ///< what sets them: the computer, a control group
  std::vector<Ability> machines;              ///< cpu, then every GPU machine
  std::string cuda;  ///< versions of the driver and of this build's runtime, or why there are none
  std::vector<Card> cards;
  Ability process_memory;  ///< memory that rank processes share
  Ability process_watch;   ///< a rank process's notice of another's death
  std::string watched_by;  ///< what gives that notice: a pidfd, or a pipe
};

/// The machine that layers with these options run on here, its name without what follows the
/// slash: what "auto" stands for. Throws as Layer does.
std::string machine_of(const LayerOptions& options);

/// Why `ranks` ranks that are processes can't have the machine that these options name, as a
/// sentence; empty when they can. Looking at cards starts their driver, which a process that is
/// going to fork must not do: it asks in a child, such as launch_processes(1, ...).
std::string why_no_processes(const LayerOptions& options, int ranks);

/// Looks, and tries what is tried quickly; runs no layer.
Computer examine_computer();

}  // namespace megamoe
