#include "runtime/launch.hpp"

#include <exception>
#include <thread>
#include <utility>

#include "base/check.hpp"
#include "runtime/group/in_process_link.hpp"

namespace megamoe {

Ending run_body(const LinkBody& body, std::shared_ptr<Link> link) {
  Ending ending;
  try {
    ending.text = body(std::move(link));
    ending.is_good = true;
  } catch (const Error& error) {
    ending.code = error.code();
    ending.text = error.what();
  } catch (const std::exception& error) {
    ending.text = error.what();
  }
  return ending;
}

std::vector<Ending> run_in_threads(int ranks, const LinkBody& body) {
  auto links = make_in_process_links(ranks);
  std::vector<Ending> endings(links.size());
  std::vector<std::jthread> threads;
  threads.reserve(links.size());
  try {
    for (std::size_t rank = 0; rank < links.size(); ++rank)
      threads.emplace_back(
          [&body, &ending = endings[rank], link = std::move(links[rank])]() mutable {
            ending = run_body(body, std::move(link));
          });
  } catch (const std::exception& error) {
    links.clear();  // tells those that have begun that the others won't come
    throw Error(
        ErrorCode::kRunFailed,
        sentence("the thread of rank ", threads.size(), " could not be started: ", error.what()));
  }
  threads.clear();
  return endings;
}

}  // namespace megamoe
