#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "files/model_config.hpp"
#include "files/safetensors_file.hpp"

namespace megamoe {

/// A published checkpoint: config.json and one safetensors file, or several under
/// model.safetensors.index.json. Shards are mapped when a tensor of theirs is first asked for.
class Checkpoint {
 public:
  /// `path`: the folder, the index, or a safetensors file in it (a shard stands for the whole
  /// checkpoint).
  explicit Checkpoint(const std::string& path);

  const std::string& path() const { return path_; }
  const ModelConfig& config() const { return config_; }
  /// Config, index and all shards, whether they were opened or not.
  std::vector<std::string> files() const;

  bool has(const std::string& name) const { return shard_of_.count(name) != 0; }
  /// Throws if there is no such tensor, its shard is missing, or the shard does not have it.
  TensorView get(const std::string& name);

  /// The layers that have a tensor "<stem><suffix>", where stem ends in "layers.<n>": n -> stem.
  /// Layers of multi-token prediction (mtp) are left out.
  std::map<int, std::string> layers_with(std::string_view suffix) const;

  /// The stem of `layer`; throws with the layers that there are if it is empty or not among them.
  std::string stem_of(const std::optional<int>& layer, std::string_view suffix) const;

 private:
  struct Shard {
    std::string path;
    std::unique_ptr<SafetensorsFile> file;  // null until asked for
  };

  void open_index(const std::string& index_path, const std::string& folder);
  bool has_shard(const std::string& file_path) const;
  void open_single(const std::string& file_path);

  std::string path_;
  std::vector<std::string> descriptions_;  // the files that say what there is
  ModelConfig config_;
  std::vector<Shard> shards_;
  std::unordered_map<std::string, std::size_t> shard_of_;  // tensor name -> place in shards_
};

}  // namespace megamoe
