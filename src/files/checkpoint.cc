#include "files/checkpoint.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "files/json_file.hpp"
#include "files/printable.hpp"

namespace megamoe {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxIndexBytes = std::size_t{64} << 20;
constexpr const char* kIndexName = "model.safetensors.index.json";

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

/// A shard lies beside its index. (It may be a symbolic link from there: download caches do that.)
void require_plain_name(const std::string& index_path,
                        const std::string& tensor,
                        const std::string& shard) {
  const bool is_plain = !shard.empty() && shard != "." && shard != ".." &&
                        shard.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos;
  require(is_plain,
          ErrorCode::kBadFile,
          index_path,
          ": tensor ",
          printable(tensor),
          " is said to be in ",
          printable(shard),
          "; a shard must be a plain file name in the same folder");
}

/// "3 to 60", or "0 to 2, 5"
std::string ranges(const std::map<int, std::string>& layers) {
  std::string text;
  for (auto at = layers.begin(); at != layers.end();) {
    const int first = at->first;
    int last = first;
    for (++at; at != layers.end() && at->first == last + 1; ++at)
      last = at->first;
    append_listed(text, std::to_string(first));
    if (last != first) text += " to " + std::to_string(last);
  }
  return text;
}

}  // namespace

Checkpoint::Checkpoint(const std::string& path) : path_(path) {
  std::error_code ignored;
  const bool is_folder = fs::is_directory(path, ignored);
  const bool is_index = !is_folder && path.ends_with(".json");
  const fs::path folder = is_folder ? fs::path(path) : fs::path(path).parent_path();
  const fs::path config = folder / "config.json";
  require(is_there(config),
          ErrorCode::kBadFile,
          path,
          " is not a layer file (it has no l1.weight), and there is no ",
          config.string(),
          ", which a checkpoint needs");
  config_ = read_model_config(config.string());
  descriptions_.push_back(config.string());

  const fs::path index = is_index ? fs::path(path) : folder / kIndexName;
  const fs::path single = is_folder ? folder / "model.safetensors" : fs::path(path);
  if (is_index || is_there(index)) open_index(index.string(), folder.string());
  if (is_index || (is_folder && !shards_.empty()) || has_shard(path)) return;
  // A file of its own, perhaps lying beside the index of something else.
  require(!is_folder || is_there(single),
          ErrorCode::kBadFile,
          path,
          " has neither ",
          kIndexName,
          " nor model.safetensors");
  shards_.clear();
  shard_of_.clear();
  open_single(single.string());
}

std::vector<std::string> Checkpoint::files() const {
  std::vector<std::string> all = descriptions_;
  for (const Shard& shard : shards_)
    all.push_back(shard.path);
  return all;
}

bool Checkpoint::has_shard(const std::string& file_path) const {
  const auto is_it = [&](const Shard& shard) {
    return fs::path(shard.path).filename() == fs::path(file_path).filename();
  };
  return std::any_of(shards_.begin(), shards_.end(), is_it);
}

void Checkpoint::open_index(const std::string& index_path, const std::string& folder) {
  const nlohmann::json index = read_json_object(index_path, kMaxIndexBytes);
  descriptions_.push_back(index_path);
  const auto map = index.find("weight_map");
  require(map != index.end() && map->is_object(),
          ErrorCode::kBadFile,
          index_path,
          " has no weight_map");
  require(map->size() <= kMaxTensors,
          ErrorCode::kBadFile,
          index_path,
          " has ",
          map->size(),
          " tensors; the most is ",
          kMaxTensors);
  std::unordered_map<std::string, std::size_t> place_of;
  for (const auto& [tensor, shard] : map->items()) {
    require(shard.is_string(),
            ErrorCode::kBadFile,
            index_path,
            ": tensor ",
            printable(tensor),
            " has no file name");
    const auto& name = shard.get_ref<const std::string&>();
    const auto [place, is_new] = place_of.emplace(name, shards_.size());
    if (is_new) {
      require_plain_name(index_path, tensor, name);
      shards_.push_back({(fs::path(folder) / name).string(), nullptr});
    }
    shard_of_.emplace(tensor, place->second);
  }
}

void Checkpoint::open_single(const std::string& file_path) {
  shards_.push_back({file_path, std::make_unique<SafetensorsFile>(file_path)});
  for (const TensorView& tensor : shards_.back().file->tensors())
    shard_of_.emplace(tensor.name, shards_.size() - 1);
}

TensorView Checkpoint::get(const std::string& name) {
  const auto found = shard_of_.find(name);
  require(found != shard_of_.end(),
          ErrorCode::kBadFile,
          path_,
          " has no tensor ",
          printable(name),
          ", which ",
          config_.model_type,
          " checkpoints have");
  Shard& shard = shards_[found->second];
  if (!shard.file) {
    require(is_there(shard.path),
            ErrorCode::kBadFile,
            shard.path,
            " is missing; the index says that tensor ",
            printable(name),
            " is in it");
    shard.file = std::make_unique<SafetensorsFile>(shard.path);
  }
  const TensorView* tensor = shard.file->find(name);
  require(tensor != nullptr,
          ErrorCode::kBadFile,
          shard.path,
          " has no tensor ",
          printable(name),
          "; the index says that it is there");
  return *tensor;
}

std::map<int, std::string> Checkpoint::layers_with(std::string_view suffix) const {
  constexpr std::string_view kLayers = "layers.";
  std::map<int, std::string> layers;
  for (const auto& [name, shard] : shard_of_) {
    if (!name.ends_with(suffix)) continue;
    const std::string_view stem = std::string_view(name).substr(0, name.size() - suffix.size());
    const std::size_t digits = stem.rfind('.') + 1;
    if (digits < kLayers.size() || !stem.substr(0, digits).ends_with(kLayers)) continue;
    if (stem.find("mtp") != std::string_view::npos) continue;
    int layer = 0;
    const auto [end, failed] =
        std::from_chars(stem.data() + digits, stem.data() + stem.size(), layer);
    if (failed != std::errc() || end != stem.data() + stem.size() || layer < 0) continue;
    const auto [at, is_new] = layers.emplace(layer, stem);
    require(is_new,
            ErrorCode::kBadFile,
            path_,
            " has layer ",
            layer,
            " twice, as ",
            printable(at->second),
            " and ",
            printable(stem));
  }
  return layers;
}

std::string Checkpoint::stem_of(const std::optional<int>& layer, std::string_view suffix) const {
  const std::map<int, std::string> layers = layers_with(suffix);
  require(!layers.empty(),
          ErrorCode::kBadFile,
          path_,
          " has no tensor named like model.layers.0",
          suffix,
          ", as ",
          config_.model_type,
          " checkpoints have");
  const std::string have = ranges(layers);
  require(layer.has_value(),
          ErrorCode::kInvalidArgument,
          path_,
          " is a checkpoint; say with --layer which layer of it to take: layers with experts are ",
          have);
  const auto found = layers.find(*layer);
  require(found != layers.end() || *layer < 0 || *layer >= config_.first_expert_layer,
          ErrorCode::kInvalidArgument,
          "layer ",
          *layer,
          " of ",
          path_,
          " is dense (first_k_dense_replace is ",
          config_.first_expert_layer,
          "); layers with experts are ",
          have);
  require(found != layers.end(),
          ErrorCode::kInvalidArgument,
          path_,
          " has no experts in layer ",
          *layer,
          "; layers with experts are ",
          have);
  return found->second;
}

}  // namespace megamoe
