#include "files/model_config.hpp"

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/check.hpp"
#include "files/json_file.hpp"
#include "files/layer_extents.hpp"
#include "files/printable.hpp"

namespace megamoe {
namespace {

using Json = nlohmann::json;

/// Prefixes, so that deepseek_v4_1 and a later minor version are their family.
struct FamilyRule {
  std::string_view model_type;
  std::string_view architecture;
  ModelFamily family;
  const char* experts_key;
  const char* intermediate_key;
};

constexpr std::array kFamilies = {
    FamilyRule{"gpt_oss", "GptOss", ModelFamily::kGptOss, "num_local_experts", "intermediate_size"},
    FamilyRule{"deepseek_v4",
               "DeepseekV4",
               ModelFamily::kDeepseekV4,
               "n_routed_experts",
               "moe_intermediate_size"},
    FamilyRule{"deepseek_v3",
               "DeepseekV3",
               ModelFamily::kDeepseekV3,
               "n_routed_experts",
               "moe_intermediate_size"},
    FamilyRule{
        "kimi_k2", "KimiK2", ModelFamily::kDeepseekV3, "n_routed_experts", "moe_intermediate_size"},
    FamilyRule{
        "qwen3_moe", "Qwen3Moe", ModelFamily::kQwen3Moe, "num_experts", "moe_intermediate_size"},
};

/// config.json with text_config, where it has one, laid over it.
class Keys {
 public:
  explicit Keys(const std::string& path) : path_(path), top_(read_json_object(path, kMaxBytes)) {
    const auto text = top_.find("text_config");
    if (text != top_.end() && text->is_object()) text_ = &*text;
  }

  /// Null if neither has the key, or it is null there.
  const Json* find(const char* key) const {
    for (const Json* level : {text_, &top_}) {
      if (level == nullptr) continue;
      const auto found = level->find(key);
      if (found != level->end() && !found->is_null()) return &*found;
    }
    return nullptr;
  }

  std::optional<int> integer(const char* key, std::int64_t least, std::int64_t most) const {
    const Json* value = find(key);
    if (value == nullptr) return std::nullopt;
    return checked(*value, key, least, most);
  }

  int checked(const Json& value, const char* key, std::int64_t least, std::int64_t most) const {
    const bool fits = value.is_number_integer() &&
                      !(value.is_number_unsigned() &&
                        value.get<std::uint64_t>() > static_cast<std::uint64_t>(most)) &&
                      value.get<std::int64_t>() >= least && value.get<std::int64_t>() <= most;
    require(fits,
            ErrorCode::kBadFile,
            path_,
            ": ",
            key,
            " is ",
            shown(value),
            "; it must be an integer from ",
            least,
            " to ",
            most);
    return value.get<int>();
  }

  /// Every string that may name the model, the most specific first.
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const Json* level : {text_, static_cast<const Json*>(&top_)}) {
      if (level == nullptr) continue;
      if (const auto type = level->find("model_type"); type != level->end() && type->is_string())
        names.push_back(type->get<std::string>());
      if (const auto list = level->find("architectures"); list != level->end() && list->is_array())
        for (const Json& name : *list)
          if (name.is_string()) names.push_back(name.get<std::string>());
    }
    return names;
  }

  static std::string shown(const Json& value) {
    return printable(value.dump(-1, ' ', true, Json::error_handler_t::replace));
  }

 private:
  static constexpr std::size_t kMaxBytes = std::size_t{16} << 20;
  std::string path_;
  Json top_;
  const Json* text_ = nullptr;
};

const FamilyRule& find_family(const std::string& path, const std::vector<std::string>& names) {
  for (const std::string& name : names)
    for (const FamilyRule& rule : kFamilies)
      if (name.starts_with(rule.model_type) || name.starts_with(rule.architecture)) return rule;
  std::string known;
  for (const FamilyRule& rule : kFamilies)
    append_listed(known, rule.model_type);
  throw Error(ErrorCode::kBadFile,
              sentence(path,
                       ": model_type is ",
                       names.empty() ? "missing" : printable(names[0]),
                       "; known are ",
                       known));
}

std::optional<float> read_limit(const std::string& path, const Keys& keys) {
  const Json* value = keys.find("swiglu_limit");
  if (value == nullptr) return std::nullopt;
  const double limit = value->is_number() ? value->get<double>() : -1;
  require(std::isfinite(limit) && limit >= 0,
          ErrorCode::kBadFile,
          path,
          ": swiglu_limit is ",
          Keys::shown(*value),
          "; it must be a number, at least 0");
  if (limit == 0) return std::nullopt;
  return static_cast<float>(limit);
}

void read_block_size(const std::string& path, const Keys& keys, ModelConfig& config) {
  const Json* quantization = keys.find("quantization_config");
  if (quantization == nullptr || !quantization->is_object()) return;
  const auto block = quantization->find("weight_block_size");
  if (block == quantization->end() || block->is_null()) return;
  require(block->is_array() && block->size() == 2,
          ErrorCode::kBadFile,
          path,
          ": weight_block_size is ",
          Keys::shown(*block),
          "; it must be two integers");
  config.scale_block_rows = keys.checked((*block)[0], "weight_block_size[0]", 1, kMaxLinearWidth);
  config.scale_block_columns =
      keys.checked((*block)[1], "weight_block_size[1]", 1, kMaxLinearWidth);
}

}  // namespace

ModelConfig read_model_config(const std::string& path) {
  const Keys keys(path);
  const std::vector<std::string> names = keys.names();
  const FamilyRule& rule = find_family(path, names);
  ModelConfig config;
  config.path = path;
  config.family = rule.family;
  config.model_type = rule.model_type;
  config.experts = keys.integer(rule.experts_key, 1, kMaxExperts);
  config.topk = keys.integer("num_experts_per_tok", 1, kMaxTopk);
  config.hidden = keys.integer("hidden_size", 1, kMaxLinearWidth);
  config.intermediate = keys.integer(rule.intermediate_key, 1, kMaxLinearWidth);
  config.first_expert_layer = keys.integer("first_k_dense_replace", 0, kMaxLinearWidth).value_or(0);
  config.swiglu_limit = read_limit(path, keys);
  read_block_size(path, keys, config);
  return config;
}

}  // namespace megamoe
