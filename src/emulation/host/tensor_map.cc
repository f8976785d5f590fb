#include "emulation/host/tensor_map.hpp"

#include "base/check.hpp"

namespace megamoe::emulation {
namespace {

bool is_float4(const TensorMapRequest& request) {
  return request.type == CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B;
}

std::uint32_t element_bytes(CUtensorMapDataType type) {
  switch (type) {
    case CU_TENSOR_MAP_DATA_TYPE_UINT8: return 1;
    case CU_TENSOR_MAP_DATA_TYPE_BFLOAT16: return 2;
    case CU_TENSOR_MAP_DATA_TYPE_INT32:
    case CU_TENSOR_MAP_DATA_TYPE_UINT32:
    case CU_TENSOR_MAP_DATA_TYPE_FLOAT32: return 4;
    default:
      throw Error(
          ErrorCode::kInvalidArgument,
          sentence("tensor maps of the type ", static_cast<int>(type), " are not emulated"));
  }
}

}  // namespace

const char* what_is_wrong_with_float4(const TensorMapRequest& request) {
  if (request.swizzle != CU_TENSOR_MAP_SWIZZLE_NONE &&
      request.swizzle != CU_TENSOR_MAP_SWIZZLE_128B)
    return "the swizzle is none or 128 bytes";
  if (request.box[0] != 128) return "a box is 128 values wide";
  if (request.extents[0] % 128 != 0) return "the innermost extent is a multiple of 128 values";
  if (reinterpret_cast<std::uintptr_t>(request.address) % 32 != 0)
    return "the address is a multiple of 32 bytes";
  for (std::uint32_t i = 0; i + 1 < request.dimensions; ++i)
    if (request.strides[i] % 32 != 0) return "strides are multiples of 32 bytes";
  if (request.box[1] < 2 || request.box[1] > 256 || request.box[1] % 2 != 0)
    return "boxes of 2 to 256 rows, an even number, are emulated";
  if (request.dimensions < 2 || request.dimensions > 3 || request.box[2] != 1)
    return "maps of 2 or 3 dimensions are emulated, boxes in a plane";
  return nullptr;
}

TensorMapRequest in_bytes(const TensorMapRequest& request) {
  TensorMapRequest bytes = request;
  if (!is_float4(request)) return bytes;
  const char* wrong = what_is_wrong_with_float4(request);
  require(wrong == nullptr, ErrorCode::kInvalidArgument, "a tensor map of FP4: ", wrong);
  bytes.type = CU_TENSOR_MAP_DATA_TYPE_UINT8;
  bytes.extents[0] /= 2;
  bytes.box[0] /= 2;
  bytes.swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;  // where the values lie once they are unpacked
  return bytes;
}

MapEntry entry_of(const TensorMapRequest& request) {
  const TensorMapRequest bytes = in_bytes(request);
  MapEntry entry{};
  entry.bytes = element_bytes(bytes.type);
  for (std::uint32_t i = 0; i < bytes.dimensions; ++i)
    entry.bytes *= bytes.box[i];
  entry.rows = request.dimensions > 1 ? request.box[1] : 1;
  entry.dimensions = request.dimensions;
  entry.is_float4 = is_float4(request) ? 1 : 0;
  entry.is_swizzled = request.swizzle == CU_TENSOR_MAP_SWIZZLE_128B ? 1 : 0;
  return entry;
}

}  // namespace megamoe::emulation
