#include "runtime/memory/available.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace megamoe {
namespace {

/// A folder that stands for /.
class Root : public testing::Test {
 protected:
  Root()
      : path_(std::filesystem::temp_directory_path() /
              ("megamoe_root_" + std::to_string(getpid()))) {
    std::filesystem::remove_all(path_);
    write("/proc/meminfo", "MemTotal:       2000 kB\nMemFree:  10 kB\nMemAvailable:   1000 kB\n");
  }
  ~Root() override { std::filesystem::remove_all(path_); }

  void write(const std::string& file, const std::string& text) const {
    const std::filesystem::path path = path_.string() + file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  AvailableMemory available() const { return available_memory(path_.string()); }

 private:
  std::filesystem::path path_;
};

TEST_F(Root, WithoutAControlGroupTheComputerIsTheBound) {
  EXPECT_EQ(available().bytes, 1000U * 1024);
  EXPECT_EQ(available().source, "the computer");
}

TEST_F(Root, AControlGroupOfVersionTwoIsTheBoundWhenItIsTighter) {
  write("/proc/self/cgroup", "0::/user/me\n");
  write("/sys/fs/cgroup/user/me/memory.max", "900000\n");
  write("/sys/fs/cgroup/user/me/memory.current", "400000\n");
  EXPECT_EQ(available().bytes, 500'000U);
  EXPECT_EQ(available().source, "the control group");
  write("/sys/fs/cgroup/user/me/memory.max", "max\n");
  EXPECT_EQ(available().source, "the computer");
}

TEST_F(Root, AControlGroupOfVersionOneAsWell) {
  write("/proc/self/cgroup", "5:cpu:/other\n4:memory:/box\n");
  write("/sys/fs/cgroup/memory/box/memory.limit_in_bytes", "800000\n");
  write("/sys/fs/cgroup/memory/box/memory.usage_in_bytes", "700000\n");
  EXPECT_EQ(available().bytes, 100'000U);
}

TEST_F(Root, CachedFilesAreAvailable) {
  write("/proc/self/cgroup", "0::/me\n");
  write("/sys/fs/cgroup/me/memory.max", "900000\n");
  write("/sys/fs/cgroup/me/memory.current", "800000\n");
  write("/sys/fs/cgroup/me/memory.stat",
        "anon 50000\nfile 700000\nshmem 50000\ninactive_file 600000\nactive_file 50000\n");
  EXPECT_EQ(available().bytes, 750'000U);
}

TEST_F(Root, InAContainerTheLimitLiesAtTheRoot) {
  write("/proc/self/cgroup", "0::/docker/abc\n");
  write("/sys/fs/cgroup/memory.max", "300000\n");
  write("/sys/fs/cgroup/memory.current", "400000\n");
  EXPECT_EQ(available().bytes, 0U);
}

}  // namespace
}  // namespace megamoe
