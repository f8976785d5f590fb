#include "files/safetensors_header.hpp"

#include <gtest/gtest.h>

#include "raw_file.hpp"
#include "refusal.hpp"

namespace megamoe::testing {
namespace {

SafetensorsHeader parse(const std::string& bytes) {
  return parse_safetensors_header(
      "f.safetensors", {reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()});
}

std::string refused(const std::string& json, std::size_t data_bytes) {
  return refusal([&] { parse(raw_header(json) + std::string(data_bytes, '\0')); });
}

std::string one(const std::string& type,
                const std::string& shape,
                std::uint64_t begin,
                std::uint64_t end) {
  return "{" + raw_entry("t", type, shape, begin, end) + "}";
}

TEST(SafetensorsHeader, ReadsTensorsByPlaceInTheFile) {
  const std::string json = "{" + raw_entry("b", "F32", "[2,3]", 4, 28) + "," +
                           raw_entry("a", "F4", "[2,4]", 0, 4) + "}   ";
  const SafetensorsHeader header = parse(raw_header(json) + std::string(28, '\0'));
  ASSERT_EQ(header.tensors.size(), 2U);
  EXPECT_EQ(header.tensors[0].name, "a");
  EXPECT_EQ(header.tensors[0].type, DataType::kF4);
  EXPECT_EQ(header.tensors[1].shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(header.tensors[1].begin, 4U);
  EXPECT_EQ(header.data_offset, 8 + json.size());
}

TEST(SafetensorsHeader, TakesScalarsEmptyTensorsAndNoTensors) {
  EXPECT_TRUE(parse(raw_header("{}")).tensors.empty());
  EXPECT_EQ(parse(raw_header(one("F32", "[]", 0, 4)) + "1234").tensors.size(), 1U);
  // No elements, although the product of the other axes leaves 64 bits.
  EXPECT_EQ(parse(raw_header(one("F32", "[4611686018427387904,4611686018427387904,0]", 0, 0)))
                .tensors.size(),
            1U);
}

TEST(SafetensorsHeader, RefusesALengthThatTheFileDoesNotHave) {
  expect_says(refusal([] { parse("1234567"); }), "f.safetensors has 7 bytes", "at least 8");
  expect_says(refusal([] { parse(std::string("\xff\xff\xff\xff\xff\xff\xff\xff{}", 10)); }),
              "18446744073709551615",
              "the most is 100000000");
  expect_says(refusal([] { parse(std::string("\x03\0\0\0\0\0\0\0{}", 10)); }),
              "header length is 3",
              "has 2 bytes");
  expect_says(refusal([] { parse(std::string(8, '\0')); }), "does not begin with '{'");
}

TEST(SafetensorsHeader, RefusesWhatIsNotItsGrammar) {
  const std::string good = R"("dtype":"U8","shape":[1],"data_offsets":[0,1])";
  const struct {
    std::string json;
    std::string says;
  } cases[] = {
      {"{", "not JSON"},
      {"{} x", "not JSON"},
      {"{\"t\":{\"dtype\":\"U8\"", "not JSON"},
      {"{\"\xff\":{}}", "not JSON"},
      {"{\"t\":1}", "header has 1 where the format allows none, at tensor 't'"},
      {"{\"t\":null}", "null"},
      {"{\"t\":[]}", "a list"},
      {"{\"t\":\"x\"}", "'x'"},
      {"{\"t\":{}}", "lacks one of dtype, shape, data_offsets"},
      {R"({"t":{"dtype":"U8","shape":[1]}})", "lacks one of"},
      {R"({"t":{"dtype":"U9","shape":[1],"data_offsets":[0,1]}})", "unknown dtype 'U9'"},
      {R"({"t":{"dtype":8,"shape":[1],"data_offsets":[0,1]}})", "header has 8"},
      {R"({"t":{"dtype":["U8"],"shape":[1],"data_offsets":[0,1]}})", "a list"},
      {R"({"t":{"dtype":"U8","shape":[[1]],"data_offsets":[0,1]}})", "a list"},
      {R"({"t":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}})", "header has -1"},
      {R"({"t":{"dtype":"U8","shape":[1.0],"data_offsets":[0,1]}})", "header has 1.0"},
      {R"({"t":{"dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,1]}})",
       "shape axis 0"},
      {R"({"t":{"dtype":"U8","shape":[18446744073709551616],"data_offsets":[0,1]}})",
       "18446744073709551616"},
      {R"({"t":{"dtype":"U8","shape":[1],"data_offsets":[0]}})", "has 1 data_offsets"},
      {R"({"t":{"dtype":"U8","shape":[1],"data_offsets":[0,1,2]}})", "more than two data_offsets"},
      {R"({"t":{"dtype":"U8","shape":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1],"data_offsets":[0,1]}})",
       "more than 16 axes"},
      {"{\"t\":{" + good + ",\"more\":1}}", "unknown key 'more'"},
      {"{\"t\":{" + good + ",\"dtype\":\"U8\"}}", "key 'dtype' twice"},
      {"{\"t\":{" + good + "},\"t\":{" + good + "}}", "names 't' twice"},
      {R"({"__metadata__":{"a":{"b":"c"}}})", "an object"},
      {R"({"__metadata__":{"a":1}})", "header has 1"},
  };
  for (const auto& [json, says] : cases)
    expect_says(refused(json, 1), "f.safetensors", says);
}

TEST(SafetensorsHeader, RefusesDeepNestingWithoutDescending) {
  const std::string deep(5'000'000, '[');
  expect_says(refused("{\"t\":" + deep, 0), "a list");
  expect_says(refused("{\"t\":{\"shape\":" + deep, 0), "a list");
}

TEST(SafetensorsHeader, RefusesPlacesThatDoNotTileTheFile) {
  expect_says(
      refused(one("U8", "[4]", 0, 4), 3), "tensor 't' ends at byte 4", "has 3 bytes of data");
  expect_says(refused(one("U8", "[4]", 0, 4), 5), "end at byte 4", "has 5 bytes of data");
  expect_says(refused(one("U8", "[4]", 1, 5), 5), "begins at byte 1", "gap after 0");
  expect_says(refused(one("U8", "[1]", 4, 3), 4), "go backwards, from 4 to 3");
  expect_says(refused(one("U8", "[4]", 18446744073709551612U, 18446744073709551615U), 4),
              "18446744073709551615");
  const std::string overlap =
      "{" + raw_entry("a", "U8", "[4]", 0, 4) + "," + raw_entry("b", "U8", "[4]", 3, 7) + "}";
  expect_says(refused(overlap, 7), "tensor 'b' begins at byte 3", "overlaps");
  const std::string same =
      "{" + raw_entry("a", "U8", "[4]", 0, 4) + "," + raw_entry("b", "U8", "[4]", 0, 4) + "}";
  expect_says(refused(same, 4), "overlaps");
}

TEST(SafetensorsHeader, RefusesShapesThatLieAboutTheirBytes) {
  expect_says(refused(one("F32", "[2]", 0, 4), 4), "F32 [2] takes 8 bytes", "give it 4");
  expect_says(refused(one("F4", "[3]", 0, 2), 2), "F4 [3]", "not a whole number of bytes");
  // 2^61 elements of 8 bytes are 2^64 bytes, which a product without a check makes 0.
  expect_says(refused(one("I64", "[2305843009213693952]", 0, 0), 0),
              "not a whole number of bytes below 2^64");
  expect_says(refused(one("U8", "[4294967296,4294967296]", 0, 0), 0), "not a whole number");
}

TEST(SafetensorsHeader, ShowsHostileNamesHarmlessly) {
  const std::string said = refused(R"({"\u001b[2J\n)" + std::string(300, 'a') + R"(":1})", 0);
  expect_says(said, "'?[2J?aaa", "...'");
  EXPECT_EQ(said.find('\x1b'), std::string::npos);
  EXPECT_LT(said.size(), 250U);
}

TEST(SafetensorsHeader, FormatsWhatItReads) {
  const std::vector<TensorEntry> entries = {{"a", DataType::kI64, {2}, 0, 16},
                                            {"b\"\\", DataType::kF4, {0, 4}, 16, 16}};
  const std::string bytes = format_safetensors_header(entries);
  EXPECT_EQ(bytes.size() % 64, 0U);
  const SafetensorsHeader header = parse(bytes + std::string(16, '\0'));
  ASSERT_EQ(header.tensors.size(), 2U);
  EXPECT_EQ(header.tensors[1].name, "b\"\\");
  EXPECT_EQ(header.tensors[1].shape, (std::vector<std::int64_t>{0, 4}));
}

}  // namespace
}  // namespace megamoe::testing
