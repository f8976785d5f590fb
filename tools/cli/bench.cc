#include "cli/verbs.hpp"

namespace megamoe::cli {
void add_bench(CLI::App&, Action&) {}
}  // namespace megamoe::cli
