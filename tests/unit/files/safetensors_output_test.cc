#include "files/safetensors_output.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "files/output_file.hpp"
#include "files/safetensors_file.hpp"
#include "raw_file.hpp"
#include "refusal.hpp"

namespace megamoe::testing {
namespace {

using Names = std::vector<std::string>;

const std::vector<TensorSpec> kTensors = {{"bytes", DataType::kU8, {3}},
                                          {"longs", DataType::kI64, {2}}};

void fill(const SafetensorsOutput& output, const std::string& name, const std::string& bytes) {
  ASSERT_EQ(output.tensor(name).size(), bytes.size());
  std::memcpy(output.tensor(name).data(), bytes.data(), bytes.size());
}

TEST(SafetensorsOutput, AppearsWholeOnCommitAndNotBefore) {
  const ScratchFolder folder;
  SafetensorsOutput output = SafetensorsOutput::create(folder.file("y"), kTensors);
  fill(output, "bytes", "abc");
  fill(output, "longs", raw<std::int64_t>({1, -2}));
  EXPECT_FALSE(std::filesystem::exists(folder.file("y")));
  output.commit();
  EXPECT_EQ(folder.names(), Names{"y"});
  const SafetensorsFile file(folder.file("y"));
  EXPECT_EQ(as_bytes(file.get("bytes").bytes.data(), 3), "abc");
  EXPECT_EQ(file.get("longs").at<std::int64_t>(1), -2);
  EXPECT_EQ(file.get("bytes").shape, std::vector<std::int64_t>{3});
}

TEST(SafetensorsOutput, UnwrittenTensorsAreZerosAndWideOnesAreAligned) {
  const ScratchFolder folder;
  SafetensorsOutput output = SafetensorsOutput::create(folder.file("y"), kTensors);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(output.tensor("longs").data()) % 8, 0U);
  EXPECT_THROW(output.tensor("other"), Error);
  output.commit();
  EXPECT_EQ(SafetensorsFile(folder.file("y")).get("longs").at<std::int64_t>(1), 0);
}

TEST(SafetensorsOutput, WithoutCommitNothingAppearsAndAnExistingFileStays) {
  const ScratchFolder folder;
  write_file(folder.file("y"), "before");
  {
    SafetensorsOutput output = SafetensorsOutput::create(folder.file("y"), kTensors);
    fill(output, "bytes", "abc");
    EXPECT_EQ(read_file(folder.file("y")), "before");
  }
  EXPECT_EQ(folder.names(), Names{"y"});
  EXPECT_EQ(read_file(folder.file("y")), "before");
}

TEST(SafetensorsOutput, AKilledProcessLeavesNothing) {
  const ScratchFolder folder;
  const int probe = ::open(folder.path().c_str(), O_TMPFILE | O_RDWR, 0600);
  if (probe < 0)
    GTEST_SKIP() << "this file system has no files without names: " << std::strerror(errno);
  ::close(probe);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const SafetensorsOutput output = SafetensorsOutput::create(folder.file("y"), kTensors);
    ::raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  EXPECT_TRUE(folder.names().empty());
}

TEST(SafetensorsOutput, ReplacesAFileAndKeepsItsMode) {
  const ScratchFolder folder;
  write_file(folder.file("y"), "before");
  ASSERT_EQ(::chmod(folder.file("y").c_str(), 0640), 0);
  SafetensorsOutput::create(folder.file("y"), kTensors).commit();
  struct stat status {};
  ASSERT_EQ(::stat(folder.file("y").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640U);
  EXPECT_EQ(SafetensorsFile(folder.file("y")).tensors().size(), 2U);
}

TEST(SafetensorsOutput, WritesBehindASymbolicLink) {
  const ScratchFolder folder;
  std::filesystem::create_symlink(folder.file("real"), folder.file("link"));
  SafetensorsOutput::create(folder.file("link"), kTensors).commit();
  EXPECT_TRUE(std::filesystem::is_symlink(folder.file("link")));
  std::filesystem::create_symlink("link", folder.file("relative"));
  SafetensorsOutput::create(folder.file("relative"), kTensors).commit();
  EXPECT_TRUE(std::filesystem::is_symlink(folder.file("relative")));
  EXPECT_TRUE(std::filesystem::is_symlink(folder.file("link")));
  std::filesystem::create_symlink("loop", folder.file("loop"));
  expect_says(refusal([&] { SafetensorsOutput::create(folder.file("loop"), kTensors); }),
              "/loop' can't be written");
  EXPECT_EQ(SafetensorsFile(folder.file("real")).tensors().size(), 2U);
}

TEST(SafetensorsOutput, IsFilledByForkedProcesses) {
  const ScratchFolder folder;
  SafetensorsOutput output = SafetensorsOutput::create(folder.file("y"), kTensors);
  for (int rank = 0; rank < 2; ++rank) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const auto value = std::int64_t{100} + rank;
      std::memcpy(output.tensor("longs").data() + rank * 8, &value, sizeof value);
      // The child's copy ends here: it must not take the parent's file with it.
      { const SafetensorsOutput gone = std::move(output); }
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
  }
  output.commit();
  const SafetensorsFile file(folder.file("y"));
  EXPECT_EQ(file.get("longs").at<std::int64_t>(0), 100);
  EXPECT_EQ(file.get("longs").at<std::int64_t>(1), 101);
}

TEST(SafetensorsOutput, ReleasedPartsKeepTheirBytes) {
  const ScratchFolder folder;
  const std::vector<TensorSpec> tensors = {{"t", DataType::kU8, {30'000}}};
  const std::string bytes = pattern(30'000, 3);
  SafetensorsOutput output = SafetensorsOutput::create(folder.file("y"), tensors);
  fill(output, "t", bytes);
  output.release(output.tensor("t").subspan(5000, 20'000));
  output.release({});
  output.commit();
  EXPECT_EQ(as_bytes(SafetensorsFile(folder.file("y")).get("t").bytes.data(), bytes.size()), bytes);
}

TEST(SafetensorsOutput, SaysBeforeTheWorkThatAPathCanNotBeWritten) {
  const ScratchFolder folder;
  const auto create = [&](const std::string& path) {
    return refusal([&] { SafetensorsOutput::create(path, kTensors); });
  };
  expect_says(create(""), "name is empty");
  expect_says(create(folder.file("no/y")), "no/y'", "No such file");
  expect_says(create(folder.path()), "is a folder");
  expect_says(create(folder.file("new/")), "can't be written");
  expect_says(create("/dev/full"), "'/dev/full' can't be written: it is not a plain file");
  write_file(folder.file("plain"), "x");
  expect_says(create(folder.file("plain/y")), "is not a folder");
  expect_says(create(folder.file(std::string(300, 'n'))), "File name too long");
  if (::geteuid() != 0) {  // who is root may write everywhere
    ASSERT_EQ(::chmod(folder.path().c_str(), 0500), 0);
    expect_says(create(folder.file("y")), "Permission denied");
    ASSERT_EQ(::chmod(folder.path().c_str(), 0700), 0);
  }
  EXPECT_EQ(folder.names(), Names{"plain"});
}

TEST(SafetensorsOutput, ATooLargeFileIsAnErrorWithTheBytesAndLeavesNothing) {
  const ScratchFolder folder;
  write_file(folder.file("y"), "before");
  const auto create = [&](std::int64_t bytes) {
    const std::vector<TensorSpec> tensors = {{"t", DataType::kU8, {bytes}}};
    return refusal([&] { SafetensorsOutput::create(folder.file("y"), tensors); });
  };
  expect_says(create(std::int64_t{1} << 60), "/y' needs 11529215046068", "the disk has", "free");
  expect_says(
      refusal([&] {
        const std::vector<TensorSpec> tensors = {{"t", DataType::kI64, {std::int64_t{1} << 61}}};
        SafetensorsOutput::create(folder.file("y"), tensors);
      }),
      "too large for a file");

  struct rlimit limit {};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  const struct rlimit small = {50'000, limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string said = create(100'000);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  expect_says(said, "/y' needs 100", "at most 50000 bytes");

  EXPECT_EQ(folder.names(), Names{"y"});
  EXPECT_EQ(read_file(folder.file("y")), "before");
}

TEST(SafetensorsOutput, AFailedCommitLeavesNothing) {
  const ScratchFolder folder;
  {
    SafetensorsOutput output = SafetensorsOutput::create(folder.file("y"), kTensors);
    std::filesystem::create_directory(folder.file("y"));  // somebody was faster
    expect_says(refusal([&] { output.commit(); }), "/y'", "given its name");
  }
  EXPECT_EQ(folder.names(), Names{"y"});
}

TEST(OutputFile, HoldsRowsAndCounts) {
  const ScratchFolder folder;
  OutputFile output(folder.file("y"), 3, 32, 5);
  ASSERT_EQ(output.y().size(), 96U);
  ASSERT_EQ(output.tokens_per_expert().size(), 5U);
  output.y()[95] = to_bfloat16(2.0F);
  output.tokens_per_expert()[4] = 9;
  output.commit();
  const SafetensorsFile file(folder.file("y"));
  EXPECT_EQ(file.get("y").type, DataType::kBF16);
  EXPECT_EQ(file.get("y").shape, (std::vector<std::int64_t>{3, 32}));
  EXPECT_EQ(file.get("y").at<std::uint16_t>(95), 0x4000);
  EXPECT_EQ(file.get("tokens_per_expert").at<std::int64_t>(4), 9);
}

TEST(OutputFile, OfNoTokensIsAFile) {
  const ScratchFolder folder;
  OutputFile output(folder.file("y"), 0, 32, 1);
  EXPECT_TRUE(output.y().empty());
  output.commit();
  EXPECT_EQ(SafetensorsFile(folder.file("y")).get("y").shape, (std::vector<std::int64_t>{0, 32}));
}

}  // namespace
}  // namespace megamoe::testing
