#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "emulation/hardware.hpp"
#include "machine/cuda/swizzle.hpp"
#include "numerics/float4.hpp"
#include "numerics/float8.hpp"

namespace megamoe::test {

using namespace emulation;

// A pair of CTAs on the CPU: shared memory, tensor memory, and the operations that the tile kernel
// issues, by `Rules` in place of the hardware's.
template <class Rules>
class PairModel {
 public:
  static constexpr std::uint32_t kPoison = 0x7FC0DEAD;  // of tensor memory that nobody wrote: NaN

  PairModel() {
    for (int cta = 0; cta < 2; ++cta) {
      shared_[cta].assign(1 << 18, 0xEE);
      tensor_[cta].assign(kTensorLanes * kTensorColumns, kPoison);
    }
  }

  // A 1-D bulk copy.
  void copy(std::uint32_t cta, std::uint32_t to, const std::byte* from, std::size_t bytes) {
    std::memcpy(&shared_[cta][to], from, bytes);
  }
  // A box of 128 columns of FP4 out of rows of `row_bytes`, unpacked by the copy engine.
  void copy_float4(
      std::uint32_t cta, std::uint32_t to, const std::byte* from, std::size_t row_bytes, int rows) {
    for (int row = 0; row < rows; ++row)
      for (int chunk = 0; chunk < 8; ++chunk)
        std::memcpy(
            &shared_[cta][to + static_cast<std::uint32_t>(gpu::swizzled_offset(row, chunk))],
            from + static_cast<std::size_t>(row) * row_bytes + chunk * 8,
            8);
  }

  void copy_scales(std::uint32_t to, std::uint64_t descriptor) {
    const MatrixDescriptor from{descriptor};
    for (std::uint32_t cta = 0; cta < 2; ++cta)
      for (std::uint32_t row = 0; row < kTensorLanes; ++row) {
        const std::uint8_t* words = &shared_[Rules::scales_come_from(cta)]
                                            [Rules::operand_address(from, row % kLanesOfWarp, 0)];
        std::memcpy(&word(cta, row, to), words, kScaleBytesPerRow);
      }
  }

  struct Columns {
    std::uint32_t sums, a_scales, b_scales;
  };
  void multiply(const Columns& at,
                std::uint64_t a,
                std::uint64_t b,
                std::uint32_t instruction,
                bool accumulates) {
    const InstructionDescriptor d{instruction};
    for (std::uint32_t n = 0; n < Rules::columns(d); ++n) {
      const RowOfCta column = Rules::b_row(n, Rules::columns(d));
      const Row x = row_of({b}, column, d.b_format());
      for (std::uint32_t m = 0; m < 256; ++m) {
        const RowOfCta place{m / kTensorLanes, m % kTensorLanes};
        const Row w = row_of({a}, place, d.a_format());
        double sum = 0;
        for (std::uint32_t k = 0; k < kDepth; ++k)
          sum += w[k] * x[k];
        const std::uint32_t quarter = place.row / 32 * 32;
        const int exponent =
            scale(place.cta, quarter, at.a_scales, place.row, Rules::a_scale_id(d)) +
            scale(place.cta, quarter, at.b_scales, n, Rules::b_scale_id(d));
        std::uint32_t& cell = word(place.cta, place.row, at.sums + n);
        const double before = accumulates ? double{std::bit_cast<float>(cell)} : 0.0;
        cell = std::bit_cast<std::uint32_t>(static_cast<float>(before + std::ldexp(sum, exponent)));
      }
    }
  }

  // Register i of a thread of a warp that loads 16 lanes from `lane` on.
  float load(std::uint32_t cta,
             std::uint32_t lane,
             std::uint32_t column,
             std::uint32_t thread,
             std::uint32_t i) {
    return std::bit_cast<float>(
        word(cta, lane + Rules::loaded_lane(thread, i), column + Rules::loaded_column(thread, i)));
  }

 private:
  using Row = std::array<double, kDepth>;

  std::uint32_t& word(std::uint32_t cta, std::uint32_t lane, std::uint32_t column) {
    return tensor_[cta].at(lane * kTensorColumns + column);
  }
  int scale(std::uint32_t cta,
            std::uint32_t quarter,
            std::uint32_t column,
            std::uint32_t row,
            std::uint32_t id) {
    const std::uint32_t lane = quarter + Rules::scale_lane(row);
    return Rules::scale_exponent(
        Rules::scale_byte(word(cta, lane, column + Rules::scale_column(row)), id));
  }
  Row row_of(const MatrixDescriptor& d, const RowOfCta& place, ElementFormat format) const {
    const std::vector<std::uint8_t>& memory = shared_[place.cta];
    Row row{};
    for (std::uint32_t k = 0; k < kDepth; ++k) {
      if (format == ElementFormat::kFloat8E4M3) {
        row[k] = to_float(Float8E4M3{memory[Rules::operand_address(d, place.row, k)]});
        continue;
      }
      const std::uint8_t pair = memory[Rules::operand_address(d, place.row, Rules::float4_byte(k))];
      row[k] = to_float(Float4E2M1{static_cast<std::uint8_t>(pair >> Rules::float4_shift(k) & 15)});
    }
    return row;
  }

  std::vector<std::uint8_t> shared_[2];
  std::vector<std::uint32_t> tensor_[2];
};

}  // namespace megamoe::test
