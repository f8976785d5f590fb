#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "files/safetensors_output.hpp"
#include "numerics/bfloat16.hpp"

namespace megamoe {

/// A call's result in the making: y BF16 [T,H] and tokens_per_expert I64 [E]. Rank threads and
/// forked rank processes write their rows into one shared mapping; commit() makes the whole file
/// appear.
class OutputFile {
 public:
  OutputFile(const std::string& path, std::int64_t tokens, int hidden, int experts);

  std::span<Bfloat16> y() const;
  std::span<std::int64_t> tokens_per_expert() const;
  void commit() { file_.commit(); }

 private:
  SafetensorsOutput file_;
};

}  // namespace megamoe
