#pragma once

#include <stdlib.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace megamoe::testing {

/// A folder of its own, removed with all that is in it.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "megamoe_files_XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  std::string path() const { return path_.string(); }
  std::string file(const std::string& name) const { return (path_ / name).string(); }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(path_))
      found.push_back(entry.path().filename().string());
    return found;
  }

 private:
  std::filesystem::path path_;
};

/// Always a new file: one that somebody has mapped keeps its bytes.
inline void write_file(const std::string& path, const std::string& bytes) {
  std::filesystem::remove(path);
  std::ofstream(path, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A tensor as a test writes it, by hand and without the product's writer.
struct RawTensor {
  std::string name;
  std::string type;
  std::vector<std::int64_t> shape;
  std::string bytes;
};

template <class T>
std::string raw(const std::vector<T>& values) {
  std::string bytes(values.size() * sizeof(T), '\0');
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

/// Length and JSON; `spaces` shift the data, so that tests can misalign it.
inline std::string raw_header(const std::string& json, int spaces = 0) {
  const std::string text = json + std::string(static_cast<std::size_t>(spaces), ' ');
  std::string bytes;
  for (int byte = 0; byte < 8; ++byte)
    bytes += static_cast<char>(text.size() >> (8 * byte) & 0xFF);
  return bytes + text;
}

inline std::string raw_entry(const std::string& name,
                             const std::string& type,
                             const std::string& shape,
                             std::uint64_t begin,
                             std::uint64_t end) {
  return "\"" + name + "\":{\"dtype\":\"" + type + "\",\"shape\":" + shape + ",\"data_offsets\":[" +
         std::to_string(begin) + "," + std::to_string(end) + "]}";
}

inline std::string raw_safetensors(const std::vector<RawTensor>& tensors, int spaces = 0) {
  std::string json = "{\"__metadata__\":{\"format\":\"pt\"}";
  std::string data;
  for (const RawTensor& tensor : tensors) {
    std::string shape = "[";
    for (std::size_t axis = 0; axis < tensor.shape.size(); ++axis) {
      if (axis != 0) shape += ",";
      shape += std::to_string(tensor.shape[axis]);
    }
    shape += "]";
    json +=
        "," +
        raw_entry(tensor.name, tensor.type, shape, data.size(), data.size() + tensor.bytes.size());
    data += tensor.bytes;
  }
  return raw_header(json + "}", spaces) + data;
}

/// Bytes that differ from place to place: the same for the same seed.
inline std::string pattern(std::size_t count, unsigned seed) {
  std::string bytes;
  std::uint32_t state = seed * 2654435761U + 1;
  for (std::size_t i = 0; i < count; ++i) {
    state = state * 1664525U + 1013904223U;
    bytes += static_cast<char>(state >> 24);
  }
  return bytes;
}

/// Pattern bytes that are no NaN as UE8M0 and whose F32 form is a normal number.
inline std::string scale_pattern(std::size_t count, unsigned seed) {
  std::string bytes = pattern(count, seed);
  for (char& byte : bytes)
    byte = static_cast<char>(100 + (static_cast<unsigned char>(byte) & 31));
  return bytes;
}

inline std::string as_bytes(const std::uint8_t* data, std::size_t count) {
  return {reinterpret_cast<const char*>(data), count};
}

}  // namespace megamoe::testing
