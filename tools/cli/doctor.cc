#include "cli/verbs.hpp"

namespace megamoe::cli {
void add_doctor(CLI::App&, Action&) {}
}  // namespace megamoe::cli
