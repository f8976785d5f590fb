#include "files/safetensors_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "raw_file.hpp"
#include "refusal.hpp"

namespace megamoe::testing {
namespace {

TEST(SafetensorsFile, ReadsValuesWhereverTheyLie) {
  // Under every shift of the data, so that typed values lie at every alignment; UBSan judges the
  // reads.
  const ScratchFolder folder;
  const std::vector<std::int64_t> values = {-1, 1LL << 40, 7};
  for (int shift = 0; shift < 8; ++shift) {
    SCOPED_TRACE(shift);
    write_file(
        folder.file("f"),
        raw_safetensors({{"t", "I64", {3}, raw(values)}, {"u", "U8", {2, 2}, "abcd"}}, shift));
    const SafetensorsFile file(folder.file("f"));
    const TensorView& tensor = file.get("t");
    for (std::size_t i = 0; i < values.size(); ++i)
      EXPECT_EQ(tensor.at<std::int64_t>(static_cast<std::int64_t>(i)), values[i]);
    EXPECT_EQ(tensor.count<std::int64_t>(), 3);
    EXPECT_THROW(tensor.at<std::int64_t>(3), Error);
    EXPECT_THROW(tensor.at<std::int64_t>(-1), Error);
    EXPECT_EQ(as_bytes(file.get("u").slice(1).data(), 2), "cd");
  }
}

TEST(SafetensorsFile, RefusesWhatIsNoPlainFile) {
  const ScratchFolder folder;
  const auto open = [&](const std::string& name) {
    return refusal([&] { SafetensorsFile file(folder.file(name)); });
  };
  expect_says(open("missing"), "missing can't be opened", "No such file");
  expect_says(open("."), "is a folder");
  write_file(folder.file("empty"), "");
  expect_says(open("empty"), "empty is empty");
  ASSERT_EQ(::mkfifo(folder.file("pipe").c_str(), 0600), 0);
  expect_says(open("pipe"), "not a plain file");
  expect_says(refusal([] { SafetensorsFile file("/dev/zero"); }), "not a plain file");
}

TEST(SafetensorsFile, NoticesAFileThatShrinks) {
  const ScratchFolder folder;
  write_file(folder.file("f"), raw_safetensors({{"t", "U8", {5000}, std::string(5000, 'x')}}));
  const SafetensorsFile file(folder.file("f"));
  EXPECT_NO_THROW(file.get("t").file->require_whole());
  ASSERT_EQ(::truncate(folder.file("f").c_str(), 100), 0);
  expect_says(refusal([&] { file.get("t").file->require_whole(); }), "shrank", "has 100");
}

TEST(SafetensorsFile, ReleasedPagesStayReadable) {
  const ScratchFolder folder;
  const std::string bytes = pattern(20'000, 1);
  write_file(folder.file("f"), raw_safetensors({{"t", "U8", {4, 5000}, bytes}}));
  const SafetensorsFile file(folder.file("f"));
  const TensorView& tensor = file.get("t");
  tensor.file->release(tensor.slice(2));
  tensor.file->release({});
  EXPECT_EQ(as_bytes(tensor.bytes.data(), tensor.bytes.size()), bytes);
}

TEST(SafetensorsFile, NamesWhatIsMissingAndWhatThereIs) {
  const ScratchFolder folder;
  write_file(folder.file("f"), raw_safetensors({{"a", "U8", {1}, "1"}, {"b", "U8", {1}, "2"}}));
  const SafetensorsFile file(folder.file("f"));
  EXPECT_EQ(file.find("c"), nullptr);
  expect_says(refusal([&] { file.get("c"); }), "has no tensor 'c'", "'a', 'b'");
}

TEST(SafetensorsFile, ShapeAndTypeSentencesNameAxisValueAndBound) {
  const ScratchFolder folder;
  write_file(folder.file("f"), raw_safetensors({{"t", "U8", {2, 3}, "123456"}}));
  const SafetensorsFile file(folder.file("f"));
  const TensorView& tensor = file.get("t");
  EXPECT_NO_THROW(require_shape(tensor, {{"rows", 2}, {"columns", 3}}));
  expect_says(refusal([&] {
                require_shape(tensor, {{"rows", 2}, {"columns", 4}});
              }),
              "tensor 't'",
              "[2,3]",
              "axis 1 (columns) is 3",
              "must be 4");
  expect_says(refusal([&] { require_shape(tensor, {{"rows", 2}}); }), "must have 1 axes");
  expect_says(refusal([&] {
                require_type(tensor, {DataType::kF32, DataType::kBF16});
              }),
              "is U8",
              "F32 or BF16");
}

}  // namespace
}  // namespace megamoe::testing
