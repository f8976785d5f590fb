#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "megamoe/error.hpp"
#include "runtime/group/link.hpp"

namespace megamoe {

/// How a rank's body ended, as it says itself or as its parent sees it.
struct Ending {
  bool is_good = false;
  std::string text;  ///< its result, or its sentence
  ErrorCode code = ErrorCode::kInternal;
  int signal = 0;
};

using LinkBody = std::function<std::string(std::shared_ptr<Link>)>;

/// One rank of `body`, with what it throws as its ending.
Ending run_body(const LinkBody& body, std::shared_ptr<Link> link);

/// Every rank in a direct child of this process, which must have one thread only.
std::vector<Ending> run_in_processes(int ranks, const LinkBody& body);

/// Every rank in a thread of this process.
std::vector<Ending> run_in_threads(int ranks, const LinkBody& body);

}  // namespace megamoe
