#include "files/input_file.hpp"

#include <cstring>

#include "files/layer_extents.hpp"
#include "files/token_split.hpp"
#include "numerics/quantize.hpp"

namespace megamoe {

InputFile::InputFile(const std::string& path) {
  const SafetensorsFile file(path);
  x_ = file.get("x");
  require_type(x_, {DataType::kBF16, DataType::kF8E4M3});
  require(x_.shape.size() == 2,
          ErrorCode::kBadFile,
          x_.where(),
          " has shape ",
          to_string(x_.shape),
          "; it must have 2 axes: token, column");
  checked_width(x_, "the hidden size", x_.shape[1]);
  if (is_quantised()) {
    scales_ = file.get("x_scale");
    require_type(scales_, {DataType::kU8, DataType::kF8E8M0});
    require_shape(scales_, {{"tokens", tokens()}, {"hidden size / 32", hidden() / kGroupSize}});
  }
  ids_ = file.get("topk_ids");
  require_type(ids_, {DataType::kI64, DataType::kI32});
  require(ids_.shape.size() == 2 && ids_.shape[1] >= 1 && ids_.shape[1] <= kMaxTopk,
          ErrorCode::kBadFile,
          ids_.where(),
          " has shape ",
          to_string(ids_.shape),
          "; it must have 2 axes: token, and k from 1 to ",
          kMaxTopk);
  require_shape(ids_, {{"tokens, as in x", tokens()}, {"k", topk()}});
  weights_ = file.get("topk_weights");
  require_type(weights_, {DataType::kF32});
  require_shape(weights_, {{"tokens, as in x", tokens()}, {"k, as in topk_ids", topk()}});
  if (const TensorView* split = file.find("tokens_per_rank")) {
    tokens_per_rank_ = *split;
    require_type(tokens_per_rank_, {DataType::kI64});
    require(split->shape.size() == 1 && split->shape[0] >= 1 && split->shape[0] <= kMaxRanks,
            ErrorCode::kBadFile,
            split->where(),
            " has shape ",
            to_string(split->shape),
            "; it must have one axis: 1 to ",
            kMaxRanks,
            " ranks");
  }
}

std::vector<std::int64_t> InputFile::tokens_per_rank(const std::optional<int>& ranks) const {
  require(!ranks || (*ranks >= 1 && *ranks <= kMaxRanks),
          ErrorCode::kInvalidArgument,
          "ranks is ",
          ranks.value_or(0),
          "; it must be 1 to ",
          kMaxRanks);
  if (!tokens_per_rank_.file) return even_split(tokens(), ranks.value_or(1));
  const std::int64_t length = tokens_per_rank_.shape[0];
  require(!ranks || *ranks == length,
          ErrorCode::kBadFile,
          tokens_per_rank_.where(),
          " has ",
          length,
          " ranks; the call has ",
          ranks.value_or(0));
  std::vector<std::int64_t> split;
  std::int64_t sum = 0;
  for (std::int64_t rank = 0; rank < length; ++rank) {
    const auto of_rank = tokens_per_rank_.at<std::int64_t>(rank);
    require(of_rank >= 0 && of_rank <= tokens() - sum,
            ErrorCode::kBadFile,
            tokens_per_rank_.where(),
            ": index ",
            rank,
            " is ",
            of_rank,
            "; it must be 0 to ",
            tokens() - sum,
            ", the tokens that ranks before it leave of ",
            tokens());
    sum += of_rank;
    split.push_back(of_rank);
  }
  require(sum == tokens(),
          ErrorCode::kBadFile,
          tokens_per_rank_.where(),
          " sums to ",
          sum,
          "; x has ",
          tokens(),
          " tokens");
  return split;
}

void InputFile::require_rows(std::int64_t first, std::int64_t count) const {
  MEGAMOE_CHECK(first >= 0 && count >= 0 && count <= tokens() && first <= tokens() - count);
  x_.file->require_whole();
}

void InputFile::read_rows(std::int64_t first,
                          std::int64_t count,
                          std::uint8_t* codes,
                          std::uint8_t* scales) const {
  require_rows(first, count);
  if (count == 0) return;
  const auto columns = static_cast<std::size_t>(hidden());
  const std::size_t groups = columns / kGroupSize;
  const auto begin = static_cast<std::size_t>(first);
  const auto rows = static_cast<std::size_t>(count);
  if (is_quantised()) {
    std::memcpy(codes, x_.bytes.data() + begin * columns, rows * columns);
    std::memcpy(scales, scales_.bytes.data() + begin * groups, rows * groups);
    return;
  }
  std::vector<Bfloat16> row(columns);  // the file's rows may be misaligned
  for (std::size_t token = 0; token < rows; ++token) {
    std::memcpy(row.data(),
                x_.bytes.data() + (begin + token) * columns * sizeof(Bfloat16),
                columns * sizeof(Bfloat16));
    quantize_row(row.data(), hidden(), codes + token * columns, scales + token * groups);
  }
}

void InputFile::read_routing(std::int64_t first,
                             std::int64_t count,
                             std::int64_t* ids,
                             float* weights) const {
  require_rows(first, count);
  for (std::int64_t i = 0; i < count * topk(); ++i) {
    const std::int64_t slot = first * topk() + i;
    ids[i] =
        ids_.type == DataType::kI64 ? ids_.at<std::int64_t>(slot) : ids_.at<std::int32_t>(slot);
    weights[i] = weights_.at<float>(slot);
  }
}

void InputFile::release_rows(std::int64_t first, std::int64_t count) const {
  require_rows(first, count);
  if (tokens() == 0) return;
  const std::size_t row_bytes = x_.bytes.size() / static_cast<std::size_t>(tokens());
  x_.file->release(x_.bytes.subspan(static_cast<std::size_t>(first) * row_bytes,
                                    static_cast<std::size_t>(count) * row_bytes));
}

}  // namespace megamoe
