#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "megamoe/plan.hpp"
#include "megamoe/problem.hpp"
#include "protocol/workspace.hpp"

namespace megamoe {

/// What all ranks must have in common, as named values. Travels as text: a hash of what follows,
/// then a line a field.
class Configuration {
 public:
  template <class Value>
  void add(const std::string& field, const Value& value) {
    add_text(field, text_of(value));
  }

  std::string text() const;
  std::uint64_t hash() const;  ///< of fields and values; the same on every computer

 private:
  template <class Value>
  static std::string text_of(const Value& value) {
    if constexpr (std::is_convertible_v<Value, std::string>)
      return value;
    else
      return std::to_string(value);
  }
  static std::string text_of(float value);
  void add_text(const std::string& field, const std::string& value);

  std::vector<std::pair<std::string, std::string>> fields_;
};

/// Throws Error(kInvalidArgument) naming the first field in which two ranks differ, both values and
/// both ranks; the same sentence whoever asks. `what` is whose configuration it is.
void require_same(const std::vector<std::string>& texts, const std::string& what);

/// A layer's: everything that decides addresses or bits.
Configuration layer_configuration(const Problem& problem,
                                  const Workspace& workspace,
                                  const std::string& machine);

}  // namespace megamoe
