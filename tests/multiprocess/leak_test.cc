#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "child_process.hpp"
#include "trial.hpp"

// Nothing is left of a group: no file in /dev/shm, no descriptor, no mapping.

namespace megamoe {
namespace {

std::set<std::string> names_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.insert(entry.path().filename());
  return names;
}

std::size_t open_descriptors() {
  return names_in("/proc/self/fd").size();
}

TEST(Leak, NothingIsLeftInSharedMemoryWhoeverIsKilled) {
  const auto before = names_in("/dev/shm");
  const Trial trial(Trial::small(2));
  launch_processes(2, [&](Group group) {
    Layer layer(group, trial.problem(), test_options());
    if (group.rank() == 1) raise(SIGKILL);
    return thrown_by([&] { layer.reset(); });
  });
  EXPECT_EQ(names_in("/dev/shm"), before);
}

TEST(Leak, LaunchingLeavesNoDescriptorsInTheParent) {
  const std::size_t before = open_descriptors();
  const Trial trial(Trial::small(2));
  launch_processes(2, [&](Group group) { return run_once(group, trial, test_options(), 0, 2); });
  EXPECT_EQ(open_descriptors(), before);
}

// M4 for processes: layers and groups that come and go leave nothing behind in a rank.
TEST(Leak, LayersAndGroupsLeaveNoDescriptorsInARank) {
  const Trial trial(Trial::small(2));
  const auto result = launch_processes(2, [&](Group outer) {
    const std::size_t before = open_descriptors();
    const std::string name = "leak-" + outer.gather(std::to_string(getpid())).front();
    for (int round = 0; round < 20; ++round) {
      Group group = Group::processes({outer.rank(), 2, name});
      run_once(group, trial, test_options(), 0, 2);
      group.gather("");  // or the next round's rank 0 may come while this one's is still there
    }
    return open_descriptors() == before ? std::string("none left")
                                        : std::string("descriptors left");
  });
  EXPECT_EQ(texts_of(result), (std::vector<std::string>{"none left", "none left"}));
}

// H11: an exception between the memory and the call.
TEST(Leak, AnExceptionFreesTheMemoryOfItsRank) {
  const auto mappings = [] {
    std::size_t count = 0;
    for (const auto& name : names_in("/proc/self/map_files"))
      count += std::filesystem::read_symlink("/proc/self/map_files/" + name)
                   .string()
                   .find("memfd:megamoe") != std::string::npos;
    return count;
  };
  const auto result = launch_processes(2, [&](Group group) {
    const std::string thrown = thrown_by([&] {
      Layer layer(group, Trial::small(2), test_options());
      if (mappings() != 2) throw Error(ErrorCode::kInternal, "two mappings were expected");
      throw Error(ErrorCode::kBadFile, "no such file");
    });
    return thrown + ", " + std::to_string(mappings()) + " mappings";
  });
  EXPECT_EQ(texts_of(result), std::vector<std::string>(2, "bad file: no such file, 0 mappings"));
}

// E1: a bound that the system sets is an error with both numbers, not a signal.
TEST(Leak, ALimitOnFileSizesIsAnErrorAndNoSignal) {
  const auto result = launch_processes(2, [&](Group group) {
    const rlimit limit{65'536, 65'536};
    if (group.rank() == 1) setrlimit(RLIMIT_FSIZE, &limit);
    return thrown_by([&] { Layer(group, Trial::small(2), test_options()); });
  });
  const auto texts = texts_of(result);
  EXPECT_EQ(texts[0], texts[1]);
  EXPECT_NE(texts[0].find("the limit on a file's size (ulimit -f) is 65536"), std::string::npos)
      << texts[0];
}

}  // namespace
}  // namespace megamoe
