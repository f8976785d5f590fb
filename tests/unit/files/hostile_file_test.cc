// Whatever bytes a file has, it is refused with a sentence or read within its bounds. Run under
// AddressSanitizer.
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "checkpoint_folder.hpp"
#include "files/input_file.hpp"
#include "files/safetensors_header.hpp"

namespace megamoe::testing {
namespace {

const std::vector<RawTensor>& layer_tensors() {
  static const std::vector<RawTensor> tensors = {{"l1.weight", "U8", {2, 64, 16}, pattern(2048, 1)},
                                                 {"l1.scale", "U8", {2, 64, 1}, pattern(128, 2)},
                                                 {"l1.bias", "F32", {2, 64}, pattern(512, 3)},
                                                 {"l2.weight", "F4", {2, 32, 32}, pattern(1024, 4)},
                                                 {"l2.scale", "F8_E8M0", {2, 1, 1}, pattern(2, 5)}};
  return tensors;
}

const std::vector<RawTensor>& input_tensors() {
  static const std::vector<RawTensor> tensors = {
      {"x", "BF16", {4, 32}, pattern(256, 1)},
      {"topk_ids", "I32", {4, 2}, pattern(32, 2)},
      {"topk_weights", "F32", {4, 2}, pattern(32, 3)},
      {"tokens_per_rank", "I64", {2}, raw<std::int64_t>({1, 3})}};
  return tensors;
}

unsigned sum(const std::uint8_t* bytes, std::size_t count) {
  return std::accumulate(bytes, bytes + count, 0U);
}

/// Opens and reads all there is; returns false if it was refused with a sentence. Anything else is
/// a crash or escapes.
bool reads_layer(const std::string& path) {
  try {
    const auto source = open_weights(path, {});
    ExpertScratch scratch;
    unsigned total = 0;
    for (int expert = 0; expert < source->facts().experts; ++expert) {
      const auto elements = static_cast<std::size_t>(source->facts().hidden) *
                            static_cast<std::size_t>(source->facts().intermediate);
      const WeightView view = source->expert(expert, scratch);
      total += sum(view.linear1, elements) + sum(view.linear1_scale, elements / 16);
      total += sum(view.linear2, elements / 2) + sum(view.linear2_scale, elements / 32);
      source->release(expert);
    }
    return total > 0;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadFile) << error.what();
    return false;
  }
}

bool reads_input(const std::string& path) {
  try {
    const InputFile input(path);
    const auto tokens = static_cast<std::size_t>(input.tokens()),
               hidden = static_cast<std::size_t>(input.hidden());
    std::vector<std::uint8_t> codes(tokens * hidden), scales(tokens * hidden / 32);
    std::vector<std::int64_t> ids(tokens * static_cast<std::size_t>(input.topk()));
    std::vector<float> weights(ids.size());
    input.read_rows(0, input.tokens(), codes.data(), scales.data());
    input.read_routing(0, input.tokens(), ids.data(), weights.data());
    input.tokens_per_rank(std::nullopt);
    return true;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kBadFile) << error.what();
    return false;
  }
}

struct Kind {
  const char* name;
  const std::vector<RawTensor>& (*tensors)();
  bool (*reads)(const std::string&);
};
void PrintTo(const Kind& kind, std::ostream* out) {
  *out << kind.name;
}
constexpr Kind kKinds[] = {{"layer", layer_tensors, reads_layer},
                           {"input", input_tensors, reads_input}};

class HostileFile : public ::testing::TestWithParam<Kind> {
 protected:
  bool reads(const std::string& bytes) {
    write_file(folder_.file("f"), bytes);
    return GetParam().reads(folder_.file("f"));
  }

 private:
  ScratchFolder folder_;
};

TEST_P(HostileFile, TheGoodOneIsRead) {
  EXPECT_TRUE(reads(raw_safetensors(GetParam().tensors())));
}

TEST_P(HostileFile, TruncatedAnywhereIsRefused) {
  const std::string good = raw_safetensors(GetParam().tensors());
  for (std::size_t length = 0; length < good.size(); ++length)
    ASSERT_FALSE(reads(good.substr(0, length))) << "cut to " << length << " bytes";
}

TEST_P(HostileFile, TooLongIsRefused) {
  EXPECT_FALSE(reads(raw_safetensors(GetParam().tensors()) + "x"));
}

TEST_P(HostileFile, EveryHeaderByteMayBeAnything) {
  const std::string good = raw_safetensors(GetParam().tensors());
  const std::size_t header = good.find("]}}") + 3;
  std::size_t accepted = 0;
  for (std::size_t place = 0; place < header; ++place)
    for (const char value :
         {'\0', '\xff', '"', '{', ']', '0', '9', ' ', static_cast<char>(good[place] ^ 1)}) {
      std::string bad = good;
      bad[place] = value;
      SCOPED_TRACE("byte " + std::to_string(place) + " is " +
                   std::to_string(static_cast<unsigned char>(value)));
      accepted += reads(bad) ? 1 : 0;
    }
  // Bytes of the metadata, and those that are what they were.
  EXPECT_LT(accepted, header * 2);
}

TEST_P(HostileFile, NumbersMayLie) {
  const std::string good = raw_safetensors(GetParam().tensors());
  const std::size_t header = good.find("]}}") + 3;
  constexpr unsigned kSeed = 20'240'607;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937 random(kSeed);
  std::vector<std::size_t> digits;
  for (std::size_t place = 8; place < header; ++place)
    if (good[place] >= '0' && good[place] <= '9') digits.push_back(place);
  for (int round = 0; round < 2000; ++round) {
    std::string bad = good;
    for (unsigned change = 0; change <= random() % 4; ++change)
      bad[digits[random() % digits.size()]] = static_cast<char>('0' + random() % 10);
    SCOPED_TRACE("round " + std::to_string(round));
    reads(bad);
  }
}

TEST_P(HostileFile, TensorsMayTradeTypesAndShapes) {
  // The header stays true to the bytes; what the tensors are said to be does not.
  constexpr unsigned kSeed = 77;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937 random(kSeed);
  for (int round = 0; round < 1000; ++round) {
    std::vector<RawTensor> tensors = GetParam().tensors();
    RawTensor& liar = tensors[random() % tensors.size()];
    const DataTypeFacts& type = kDataTypes[random() % kDataTypes.size()];
    liar.type = type.name;
    liar.shape.resize(random() % 4);
    for (std::int64_t& extent : liar.shape)
      extent = static_cast<std::int64_t>(random() % 3 == 0 ? random() % 5 : 32 * (random() % 3));
    const auto bytes = bytes_of(type.type, liar.shape);
    if (!bytes) continue;
    liar.bytes = pattern(*bytes, static_cast<unsigned>(random()));
    SCOPED_TRACE(liar.name + " " + liar.type + " " + to_string(liar.shape));
    reads(raw_safetensors(tensors));
  }
}

INSTANTIATE_TEST_SUITE_P(Files, HostileFile, ::testing::ValuesIn(kKinds), [](const auto& kind) {
  return std::string(kind.param.name);
});

TEST(HostileHeader, ParsesOnlyWhatIsThere) {
  // On heap memory of exactly the file's size, where one byte too far is seen.
  const std::string good = raw_safetensors(layer_tensors());
  constexpr unsigned kSeed = 4711;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937 random(kSeed);
  for (int round = 0; round < 5000; ++round) {
    std::vector<std::uint8_t> bytes(good.begin(), good.end());
    bytes.resize(random() % (good.size() + 1));
    bytes.shrink_to_fit();
    for (unsigned change = 0; change < random() % 6 && !bytes.empty(); ++change)
      bytes[random() % std::min<std::size_t>(bytes.size(), 400)] =
          static_cast<std::uint8_t>(random());
    if (bytes.size() > 8 && random() % 2 == 0) {  // a length that fits what is left
      const std::uint64_t length = random() % (bytes.size() - 7);
      std::memcpy(bytes.data(), &length, sizeof length);
    }
    try {
      const SafetensorsHeader header = parse_safetensors_header("f", bytes);
      for (const TensorEntry& tensor : header.tensors)
        ASSERT_LE(header.data_offset + tensor.end, bytes.size());
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ErrorCode::kBadFile);
    }
  }
}

TEST(HostileCheckpoint, ConfigAndIndexMayBeAnything) {
  const std::string config =
      R"({"model_type":"qwen3_moe","num_experts":1,"first_k_dense_replace":0,"swiglu_limit":1.0,)"
      R"("quantization_config":{"weight_block_size":[128,128]}})";
  CheckpointFolder folder;
  std::vector<RawTensor> tensors;
  for (const char* name : {"gate_proj", "up_proj", "down_proj"})
    tensors.push_back({std::string("model.layers.0.mlp.experts.0.") + name + ".weight",
                       "BF16",
                       {32, 32},
                       pattern(2048, 1)});
  folder.config(config);
  folder.sharded(tensors, 2);
  const std::string index = read_file(folder.file(CheckpointFolder::kIndex));
  std::size_t refused = 0;
  const auto try_open = [&] {
    try {
      ExpertScratch scratch;
      folder.open(0, true)->expert(0, scratch);
    } catch (const Error& error) {
      EXPECT_NE(error.code(), ErrorCode::kInternal) << error.what();
      ++refused;
    }
  };
  for (const auto& [name, good] : {std::pair<std::string, std::string>{"config.json", config},
                                   {CheckpointFolder::kIndex, index}}) {
    for (std::size_t place = 0; place < good.size(); ++place)
      for (const char value : {'\0', '"', '{', '[', ',', '9', '-', 'e'}) {
        SCOPED_TRACE(name + " byte " + std::to_string(place) + " is " + value);
        std::string bad = good;
        bad[place] = value;
        write_file(folder.file(name), bad);
        try_open();
      }
    write_file(folder.file(name), good);
  }
  EXPECT_GT(refused, config.size());
}

}  // namespace
}  // namespace megamoe::testing
