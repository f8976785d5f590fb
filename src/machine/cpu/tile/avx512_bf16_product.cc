#include "machine/cpu/tile/avx512_bf16_product.hpp"

namespace megamoe::cpu {
MultiplyFunction avx512_bf16_product() {
  return nullptr;
}
}  // namespace megamoe::cpu
