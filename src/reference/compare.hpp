#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "numerics/bfloat16.hpp"
#include "reference/layer_reference.hpp"

namespace megamoe {

// What a machine may differ by from the reference. A change of 1e-4 in an accumulator can flip a
// code of the requantised activation and move outputs by several 1e-3: hence a norm over all cells
// and a bound per cell that follows the slots it was summed from, and no flat tolerance.
struct Tolerance {
  double relative_l2;  // ||got - wanted|| / ||wanted|| over all finite cells
  double cell_factor;  // times 2^-7 * sum over k |slot| + 0.03 * rms(wanted)
};

inline constexpr Tolerance kExactTolerance{.relative_l2 = 0.002, .cell_factor = 1};
// Machines that regroup scales: a flipped code is off by a sixteenth, and a cell may rest on one of
// them. Measured on an H200: of 262,144 cells two were 5.1 times as far off as exact machines may
// be.
inline constexpr Tolerance kRegroupedTolerance{.relative_l2 = 0.010, .cell_factor = 8};

struct ComparedCell {
  std::int64_t token = -1;  // -1: there is none
  std::int64_t column = -1;
  float got = 0;
  float wanted = 0;
  double bound = 0;
  double share = 0;  // |got - wanted| / bound; above 1 it is too far off
};

struct Comparison {
  Tolerance tolerance = kExactTolerance;
  double relative_l2 = 0;
  std::int64_t cells_beyond_bound = 0;
  ComparedCell worst;  // the largest share among finite cells
  // Cells that are NaN or infinite on one side must hold the same bits on the other (NaN is
  // 0x7FC0).
  std::int64_t nonfinite_cells = 0;
  std::int64_t nonfinite_mismatches = 0;
  ComparedCell first_mismatch;

  bool agrees() const;
  // One sentence for a person, whatever the verdict.
  std::string explain() const;
};

// Judges `got` [T, H] by the reference's y. Throws kInvalidArgument if the sizes differ.
Comparison compare(std::span<const Bfloat16> got,
                   const ReferenceOutput& wanted,
                   std::int64_t hidden,
                   Tolerance tolerance = kExactTolerance);

}  // namespace megamoe
