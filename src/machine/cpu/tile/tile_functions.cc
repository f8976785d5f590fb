#include "machine/cpu/tile/tile_functions.hpp"

#include "machine/cpu/tile/avx512_bf16_product.hpp"
#include "machine/cpu/tile/highway_functions.hpp"
#include "machine/cpu/tile/scalar_functions.hpp"

namespace megamoe::cpu {
namespace {

// AVX-512 but for the product.
TileFunctions with_bf16_product() {
  TileFunctions functions = *highway_functions(InstructionSet::kAvx512);
  functions.multiply = avx512_bf16_product();
  functions.multiply_registers = multiply_bf16_registers;
  functions.flops_of_round = kBf16FlopsOfRound;
  return functions;
}

}  // namespace

const TileFunctions* functions_of(InstructionSet set) {
  if (set == InstructionSet::kScalar) return &scalar_functions();
  if (set != InstructionSet::kAvx512Bf16) return highway_functions(set);
  if (avx512_bf16_product() == nullptr || highway_functions(InstructionSet::kAvx512) == nullptr)
    return nullptr;
  static const TileFunctions functions = with_bf16_product();
  return &functions;
}

}  // namespace megamoe::cpu
