#include <gtest/gtest.h>

#include <cstring>

#include "emulation/host/report_text.hpp"
#include "emulation/host/tensor_map.hpp"
#include "megamoe/error.hpp"

// What the host side decides without a card.
namespace megamoe::emulation {
namespace {

TEST(ReportText, HasItsValuesInPlace) {
  Report report{.is_set = 1, .cta = 7, .thread = 70, .unused = 0, .values = {255, 3}, .text = {}};
  std::strcpy(report.text, "barrier #x, parity #, left over #");
  EXPECT_EQ(text_of(report), "CTA 7, warp 2, lane 6: barrier 0xff, parity 3, left over 0");
}

TEST(ReportText, MoreMarksThanValuesStay) {
  Report report{};
  std::strcpy(report.text, "# # # # #");
  EXPECT_EQ(text_of(report), "CTA 0, warp 0, lane 0: 0 0 0 0 #");
}

TensorMapRequest float4_request() {
  return {.type = CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B,
          .address = reinterpret_cast<void*>(0x1000),
          .extents = {512, 300, 1},
          .strides = {256, 0},
          .box = {128, 128, 1},
          .swizzle = CU_TENSOR_MAP_SWIZZLE_128B};
}

TEST(TensorMap, Float4IsEncodedAsBytes) {
  const TensorMapRequest bytes = in_bytes(float4_request());
  EXPECT_EQ(bytes.type, CU_TENSOR_MAP_DATA_TYPE_UINT8);
  EXPECT_EQ(bytes.extents[0], 256U);
  EXPECT_EQ(bytes.box[0], 64U);
  EXPECT_EQ(bytes.box[1], 128U);
  EXPECT_EQ(bytes.swizzle, CU_TENSOR_MAP_SWIZZLE_NONE) << "the device library permutes";
  const MapEntry entry = entry_of(float4_request());
  EXPECT_EQ(entry.bytes, 64U * 128U) << "packed: what Blackwell's barrier counts too";
  EXPECT_EQ(entry.rows, 128U);
  EXPECT_EQ(entry.is_float4, 1U);
  EXPECT_EQ(entry.is_swizzled, 1U);
}

TEST(TensorMap, OtherTypesStay) {
  const TensorMapRequest request{.type = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, .box = {64, 8, 1}};
  EXPECT_EQ(in_bytes(request).type, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
  EXPECT_EQ(entry_of(request).bytes, 1024U);
  EXPECT_EQ(entry_of(request).is_float4, 0U);
}

TEST(TensorMap, UnknownTypesAreRefused) {
  TensorMapRequest request = float4_request();
  request.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT64;
  EXPECT_THROW(entry_of(request), Error);
}

// Each rule of Blackwell's driver, broken alone.
TEST(TensorMap, Float4IsHeldToBlackwellsRules) {
  EXPECT_EQ(what_is_wrong_with_float4(float4_request()), nullptr);
  const auto expect_wrong = [](auto change, const char* words) {
    TensorMapRequest request = float4_request();
    change(request);
    const char* wrong = what_is_wrong_with_float4(request);
    ASSERT_NE(wrong, nullptr) << words;
    EXPECT_NE(std::strstr(wrong, words), nullptr) << wrong;
    EXPECT_THROW(in_bytes(request), Error);
  };
  expect_wrong([](auto& r) { r.swizzle = CU_TENSOR_MAP_SWIZZLE_64B; }, "swizzle");
  expect_wrong([](auto& r) { r.box[0] = 64; }, "128 values wide");
  expect_wrong([](auto& r) { r.extents[0] = 480; }, "innermost extent");
  expect_wrong([](auto& r) { r.address = reinterpret_cast<void*>(0x1010); }, "address");
  expect_wrong([](auto& r) { r.strides[0] = 240; }, "strides");
  expect_wrong([](auto& r) { r.box[1] = 127; }, "rows");
  expect_wrong([](auto& r) { r.box[2] = 2; }, "dimensions");
}

}  // namespace
}  // namespace megamoe::emulation
