#pragma once

#include <cstdint>
#include <limits>

namespace megamoe {

inline constexpr int kMaxRanks = 72;             ///< one NVLink domain of the largest kind
inline constexpr int kMaxExperts = 1024;         ///< over all ranks
inline constexpr int kMaxTopk = 32;              ///< k-slots of a token
inline constexpr int kMaxCapacity = 65'536;      ///< tokens of a rank in one call
inline constexpr int kMaxLinearWidth = 1 << 19;  ///< of hidden and of intermediate

/// Which gated activation stands between linear 1 and linear 2.
enum class ActivationKind : std::uint8_t {
  kSwiglu,     ///< silu(gate) * up
  kSwigluOai,  ///< gate * sigmoid(alpha * gate) * (up + 1), both clamped to `limit` (gpt-oss)
};

/// The activation and its parameters; part of the layer, the same on all ranks.
///   kSwiglu     gate <- min(gate, clamp), up <- clamp(up, -clamp, clamp) before use; infinity: no
///               clamp
///   kSwigluOai  the same with `limit`; `alpha` scales the sigmoid's argument; `clamp` is not used
/// A NaN passes through every clamp.
struct Activation {
  ActivationKind kind = ActivationKind::kSwiglu;
  float clamp = std::numeric_limits<float>::infinity();  ///< >= 0
  float alpha = 1.702F;                                  ///< finite
  float limit = 7.0F;                                    ///< >= 0
  bool fast_math = true;  ///< approximate exp and reciprocal allowed; false: the precise ones

  bool operator==(const Activation&) const = default;
};

/// What a layer is, the same on all ranks. Plain value; `validate()` says what is wrong with one.
struct Problem {
  int ranks = 1;            ///< R, 1..72; expert e lives on rank e / experts_per_rank()
  int experts = 1;          ///< E, a multiple of `ranks`, at most 1024
  int topk = 1;             ///< K, 1..32
  int hidden = 32;          ///< H, a multiple of 32, at most 2^20
  int intermediate = 32;    ///< I, a multiple of 32, at most 2^20
  int capacity = 1;         ///< C, 1..65536: the most tokens that a rank may bring to one call
  bool has_biases = false;  ///< per-expert biases on gate, up and down
  Activation activation = {};

  constexpr int experts_per_rank() const { return experts / ranks; }
  constexpr int rank_of(int expert) const { return expert / experts_per_rank(); }
  constexpr std::int64_t pairs() const {
    return std::int64_t{capacity} * topk;
  }  ///< (token, k) of a rank
  bool operator==(const Problem&) const = default;
};

/// Throws Error(kInvalidArgument) naming the first field that is out of its bounds, its value and
/// the bound.
void validate(const Problem& problem);

}  // namespace megamoe
