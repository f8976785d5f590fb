#pragma once

#include <map>
#include <string>
#include <vector>

#include "files/weight_source.hpp"
#include "raw_file.hpp"

namespace megamoe::testing {

/// A checkpoint on the disk, written by hand: config.json, and one file or shards under an index.
class CheckpointFolder {
 public:
  void config(const std::string& json) { write_file(folder_.file("config.json"), json); }

  void single(const std::vector<RawTensor>& tensors, int shift = 0) {
    write_file(folder_.file("model.safetensors"), raw_safetensors(tensors, shift));
  }

  /// Tensor i goes to shard i % num_shards.
  void sharded(const std::vector<RawTensor>& tensors, std::size_t num_shards) {
    std::vector<std::vector<RawTensor>> shards(num_shards);
    std::map<std::string, std::string> map;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      shards[i % num_shards].push_back(tensors[i]);
      map[tensors[i].name] = shard_name(i % num_shards);
    }
    for (std::size_t shard = 0; shard < num_shards; ++shard)
      write_file(folder_.file(shard_name(shard)),
                 raw_safetensors(shards[shard], static_cast<int>(shard)));
    index(map);
  }

  void index(const std::map<std::string, std::string>& map) {
    std::string json = R"({"metadata":{"total_size":1},"weight_map":{)";
    for (const auto& [tensor, file] : map) {
      if (json.back() != '{') json += ",";
      json += "\"" + tensor + "\":\"" + file + "\"";
    }
    write_file(folder_.file(kIndex), json + "}}");
  }

  static std::string shard_name(std::size_t shard) {
    return "model-0000" + std::to_string(shard + 1) + ".safetensors";
  }

  std::unique_ptr<WeightSource> open(int layer,
                                     bool allow_requantise = false,
                                     const std::string& name = "") const {
    WeightOptions options;
    options.layer = layer;
    options.allow_requantise = allow_requantise;
    return open_weights(name.empty() ? path() : folder_.file(name), options);
  }

  std::string path() const { return folder_.path(); }
  std::string file(const std::string& name) const { return folder_.file(name); }

  static constexpr const char* kIndex = "model.safetensors.index.json";

 private:
  ScratchFolder folder_;
};

}  // namespace megamoe::testing
