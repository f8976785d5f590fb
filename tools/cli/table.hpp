#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

namespace megamoe::cli {

/// Two columns for a person: what, and its value.
class FactTable {
 public:
  void add(std::string name, std::string value);
  void print(std::ostream& out) const;

 private:
  struct Fact {
    std::string name, value;
  };
  std::vector<Fact> facts_;
};

std::string fixed(double value, int digits);
std::string bytes_text(std::uint64_t bytes);                          ///< "43.2 MB", decimal units
std::string count_text(std::uint64_t count, const std::string& one);  ///< "1 rank", "4 ranks"

}  // namespace megamoe::cli
