#include "megamoe/ceilings.hpp"

#include "machine/cpu/ceilings.hpp"

namespace megamoe {

Ceilings measure_ceilings(const LayerOptions& options, int threads) {
  const cpu::InstructionSet set = options.instruction_set.empty()
                                      ? cpu::best_instruction_set()
                                      : cpu::instruction_set_of(options.instruction_set);
  return {.read_bytes_per_second = cpu::measure_read_rate(threads),
          .flops_per_second = cpu::measure_flop_rate(threads, set)};
}

}  // namespace megamoe
