#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "files/safetensors_file.hpp"

namespace megamoe {

/// The tokens of all ranks, in rank order (T is their total):
///   x             BF16 [T,H], quantised as it is read; or F8_E4M3 [T,H] with x_scale U8 or F8_E8M0
///   [T,H/32] topk_ids      I64 or I32 [T,K]       topk_weights  F32 [T,K] tokens_per_rank I64 [R],
///   may be absent
/// Names, types and shapes are checked when it is opened; values are not: a NaN is legal, and an id
/// is judged by whoever knows the number of experts. const members may be called from several
/// threads.
class InputFile {
 public:
  explicit InputFile(const std::string& path);

  std::int64_t tokens() const { return x_.shape[0]; }
  int hidden() const { return static_cast<int>(x_.shape[1]); }
  int topk() const { return static_cast<int>(ids_.shape[1]); }
  bool is_quantised() const { return x_.type == DataType::kF8E4M3; }

  /// How many tokens each rank has: tokens_per_rank, which must then have `ranks` entries where
  /// that is given; else an even split over `ranks`, or one rank.
  std::vector<std::int64_t> tokens_per_rank(const std::optional<int>& ranks) const;

  /// Tokens [first, first + count) as E4M3 codes [count,H] and UE8M0 scales [count,H/32].
  void read_rows(std::int64_t first,
                 std::int64_t count,
                 std::uint8_t* codes,
                 std::uint8_t* scales) const;

  /// The same tokens' routing, ids [count,K] widened to 64 bits.
  void read_routing(std::int64_t first,
                    std::int64_t count,
                    std::int64_t* ids,
                    float* weights) const;

  /// Token rows that were read are no longer counted as this process's memory.
  void release_rows(std::int64_t first, std::int64_t count) const;

 private:
  void require_rows(std::int64_t first, std::int64_t count) const;

  TensorView x_, scales_, ids_, weights_, tokens_per_rank_;  // without a file: absent
};

}  // namespace megamoe
