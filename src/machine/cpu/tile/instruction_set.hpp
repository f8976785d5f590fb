#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace megamoe::cpu {

// What the tile kernel is compiled for, slowest first. Part of the machine kind: each set has one
// order of summation, and two sets need not agree in the last bits.
enum class InstructionSet : std::uint8_t {
  kScalar,      // plain C++, on any computer
  kNeon,        // AArch64
  kSse4,        // SSE4.2
  kAvx2,        // AVX2 with FMA and BMI2
  kAvx512,      // AVX-512 F, BW, CD, DQ, VL
  kAvx512Bf16,  // the same with bf16 dot products
};

std::string_view name(InstructionSet set);

// Those that were compiled in and that this computer can run, slowest first; never empty.
std::span<const InstructionSet> supported_instruction_sets();
bool is_supported(InstructionSet set);
InstructionSet best_instruction_set();

// The set of that name, if this computer has it. Throws Error: kInvalidArgument for an unknown
// name, kUnsupportedMachine for a set that is not supported here.
InstructionSet instruction_set_of(std::string_view name);

}  // namespace megamoe::cpu
