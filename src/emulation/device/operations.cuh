#pragma once

#include <cstdint>

#include "emulation/device/tensor_memory.cuh"

// tcgen05.cp, tcgen05.mma and tcgen05.commit. One elected thread issues them in the kernel; the
// rewriter lets its whole warp come here, with the same arguments in every lane.
namespace megamoe::emulation {

// An offset of a descriptor (it has no CTA in it), in a CTA of the pair.
MEGAMOE_DEVICE std::uint32_t shared_of(std::uint32_t offset, std::uint32_t rank) {
  return in_cta((ptx::shared_address(&cta) & 0xFF00'0000U) | offset, rank);
}

MEGAMOE_DEVICE uint4 load_cluster_u32x4(std::uint32_t address) {
  uint4 v;
  asm volatile("ld.shared::cluster.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(address)
               : "memory");
  return v;
}

__device__ __noinline__ void copy_scales(const TensorOperation& operation) {
  const MatrixDescriptor from{operation.a};
  fence_cluster();
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    const std::uint32_t row = Hardware::operand_address(from, lane(), 0);
    const uint4 words = load_cluster_u32x4(shared_of(row, Hardware::scales_come_from(rank)));
    std::uint32_t* to = tensor_memory_of(rank) + tensor_column(operation.to);
    for (std::uint32_t quarter = 0; quarter < 4; ++quarter) {
      std::uint32_t* place = to + (quarter * 32 + lane()) * kTensorColumns;
      store_word(place, words.x);
      store_word(place + 1, words.y);
      store_word(place + 2, words.z);
      store_word(place + 3, words.w);
    }
  }
  fence_device();
  __syncwarp();
}

// ---- the product. Values are exact in f16, products in fp32; sums of 16 are the tensor core's
// own.

// Eight values of K, 8 * quarter and on, of a row: E4M3 as they lie, E2M1 in the first word or the
// second.
MEGAMOE_DEVICE uint2 load_eight(const MatrixDescriptor& d,
                                std::uint32_t cta_base,
                                std::uint32_t row,
                                std::uint32_t quarter,
                                ElementFormat format) {
  const std::uint32_t k_byte =
      quarter / 2 * 16 + (format == ElementFormat::kFloat8E4M3 ? quarter % 2 * 8 : 0);
  uint2 v;
  asm volatile("ld.shared::cluster.v2.u32 {%0, %1}, [%2];"
               : "=r"(v.x), "=r"(v.y)
               : "r"(cta_base + Hardware::operand_address(d, row, k_byte)));
  return v;
}

MEGAMOE_DEVICE void decode_eight(uint2 words,
                                 std::uint32_t quarter,
                                 ElementFormat format,
                                 std::uint32_t (&halves)[4]) {
  if (format == ElementFormat::kFloat8E4M3) {
    halves[0] = ptx::float8x2_to_float16x2(words.x & 0xFFFF);
    halves[1] = ptx::float8x2_to_float16x2(words.x >> 16);
    halves[2] = ptx::float8x2_to_float16x2(words.y & 0xFFFF);
    halves[3] = ptx::float8x2_to_float16x2(words.y >> 16);
    return;
  }
  const std::uint32_t packed = quarter % 2 != 0 ? words.y : words.x;
  for (int i = 0; i < 4; ++i) {
    const std::uint32_t byte = packed >> 8 * i & 0xFF;
    const std::uint32_t both = (byte & 15) | (byte & 0xF0) << 12;
    // Exponent and mantissa where f16 has its highest of each: 2^14 too small.
    const std::uint32_t small = (both & 0x0008'0008U) << 12 | (both & 0x0007'0007U) << 9;
    halves[i] = ptx::multiply_float16x2(small, 0x7400'7400U);
  }
}

MEGAMOE_DEVICE float scale_value(std::uint32_t byte) {
  const std::uint32_t bits = byte == 255 ? 0x7FFF'FFFFU : byte == 0 ? 0x0040'0000U : byte << 23;
  return __uint_as_float(bits);
}

// Sixteen rows of A by eight columns of B, 16 of K: f16 fragments, `sums` accumulates.
MEGAMOE_DEVICE void multiply_16x8x16(float (&sums)[4],
                                     const std::uint32_t (&upper)[4],
                                     const std::uint32_t (&lower)[4],
                                     const std::uint32_t (&b)[4],
                                     int half) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
      : "r"(upper[2 * half]),
        "r"(lower[2 * half]),
        "r"(upper[2 * half + 1]),
        "r"(lower[2 * half + 1]),
        "r"(b[2 * half]),
        "r"(b[2 * half + 1]));
}

// What the warp's sixteen rows of A need throughout: thread `lane` has rows lane / 4 and 8 below.
struct SixteenRows {
  std::uint32_t upper[4], lower[4];
  float upper_scale, lower_scale;
  std::uint32_t* sums;    // of the thread's upper row and first column
  std::uint32_t* scales;  // of B, in the rows' own 32 lanes
};

// Four tiles of eight columns at a time, all loads first.
template <class Columns>
MEGAMOE_DEVICE void multiply_columns(const TensorOperation& o,
                                     const SixteenRows& rows,
                                     const std::uint32_t (&cta_base)[2],
                                     Columns columns,
                                     std::uint32_t first) {
  const InstructionDescriptor d{o.instruction};
  const std::uint32_t tiles = (columns - first) / 8;
  const std::uint32_t quarter = lane() % 4;
  constexpr std::uint32_t kLower = 8 * kTensorColumns;
  const std::uint32_t scale = Hardware::scale_byte(
      load_word(rows.scales + Hardware::scale_lane(first + lane()) * kTensorColumns +
                Hardware::scale_column(first)),
      Hardware::b_scale_id(d));
  uint2 words[4];
  float2 upper[4], lower[4];
  MEGAMOE_UNROLL
  for (std::uint32_t j = 0; j < 4; ++j) {
    upper[j] = lower[j] = make_float2(0, 0);
    if (j >= tiles) continue;
    const std::uint32_t column = first + 8 * j;
    const RowOfCta b = Hardware::b_row(column + lane() / 4, columns);
    words[j] = load_eight({o.b}, cta_base[b.cta], b.row, quarter, d.b_format());
    if (o.accumulates == 0) continue;
    upper[j] = load_sums(rows.sums + column);
    lower[j] = load_sums(rows.sums + kLower + column);
  }
  MEGAMOE_UNROLL
  for (std::uint32_t j = 0; j < 4; ++j) {
    if (j >= tiles) continue;
    const float x = scale_value(__shfl_sync(~0U, scale, 8 * j + 2 * quarter));
    const float y = scale_value(__shfl_sync(~0U, scale, 8 * j + 2 * quarter + 1));
    std::uint32_t b[4];
    decode_eight(words[j], quarter, d.b_format(), b);
    float sums[4] = {};
    multiply_16x8x16(sums, rows.upper, rows.lower, b, 0);
    multiply_16x8x16(sums, rows.upper, rows.lower, b, 1);
    std::uint32_t* to = rows.sums + first + 8 * j;
    store_sums(to,
               fmaf(sums[0] * rows.upper_scale, x, upper[j].x),
               fmaf(sums[1] * rows.upper_scale, y, upper[j].y));
    store_sums(to + kLower,
               fmaf(sums[2] * rows.lower_scale, x, lower[j].x),
               fmaf(sums[3] * rows.lower_scale, y, lower[j].y));
  }
}

__device__ __noinline__ void multiply(const TensorOperation& o) {
  const InstructionDescriptor d{o.instruction};
  const std::uint32_t columns = Hardware::columns(d);
  const std::uint32_t cta_base[2] = {shared_of(0, 0), shared_of(0, 1)};
  const std::uint32_t quarter = lane() % 4;
  fence_cluster();
  for (std::uint32_t row = lane() / 4; row < 256; row += 16) {
    const std::uint32_t rank = row / kTensorLanes;
    const std::uint32_t in_rank = row % kTensorLanes;
    std::uint32_t* memory = tensor_memory_of(rank);
    std::uint32_t* own_lanes = memory + in_rank / 32 * 32 * kTensorColumns;
    const auto scale_of = [&](std::uint32_t r) {
      const std::uint32_t* word = own_lanes + Hardware::scale_lane(r) * kTensorColumns +
                                  tensor_column(o.a_scales) + Hardware::scale_column(r);
      return scale_value(Hardware::scale_byte(load_word(word), Hardware::a_scale_id(d)));
    };
    SixteenRows rows{.upper_scale = scale_of(in_rank),
                     .lower_scale = scale_of(in_rank + 8),
                     .sums = memory + in_rank * kTensorColumns + tensor_column(o.to) + 2 * quarter,
                     .scales = own_lanes + tensor_column(o.b_scales)};
    const auto decode_row = [&](std::uint32_t r, std::uint32_t(&halves)[4]) {
      decode_eight(load_eight({o.a}, cta_base[rank], r, quarter, d.a_format()),
                   quarter,
                   d.a_format(),
                   halves);
    };
    decode_row(in_rank, rows.upper);
    decode_row(in_rank + 8, rows.lower);
    for (std::uint32_t first = 0; first < columns; first += 32)
      multiply_columns(o, rows, cta_base, columns, first);
  }
  fence_device();
  __syncwarp();
}

// ---- issue

MEGAMOE_DEVICE void execute(const TensorOperation& operation) {
  if (operation.is_multiply != 0)
    multiply(operation);
  else
    copy_scales(operation);
}

MEGAMOE_DEVICE TensorOperation* queue() {
  return emulated_settings.queues + static_cast<std::size_t>(blockIdx.x) * kQueueLength;
}

MEGAMOE_DEVICE void issue(const TensorOperation& operation) {
  if (emulated_settings.is_deferred == 0) {
    execute(operation);
    return;
  }
  expect(cta.queued < kQueueLength, "# tensor operations without a commit", cta.queued);
  __syncwarp();
  if (lane() == 0) queue()[cta.queued++] = operation;
  __syncwarp();
}

// By the one warp that issues, in the leader, all lanes alike. `a`, `b`: all arguments.
MEGAMOE_DEVICE void expect_issuer(std::uint64_t a, std::uint64_t b) {
  expect(__activemask() == ~0U, "a tensor operation by a part of a warp");
  expect(__shfl_sync(~0U, a, 0) == a && __shfl_sync(~0U, b, 0) == b,
         "the arguments of a tensor operation differ between lanes: #x, #x",
         a,
         b);
  expect(cluster_rank() == 0, "a tensor operation of the pair by CTA #", cluster_rank());
  if (lane() == 0 && cta.issuing_warp == kNobody) cta.issuing_warp = warp();
  __syncwarp();
  expect(cta.issuing_warp == warp(),
         "tensor operations by warps # and #: their order is not defined",
         cta.issuing_warp,
         warp());
}

extern "C" __device__ __noinline__ void emulated_copy_scales(std::uint32_t to, std::uint64_t from) {
  expect_issuer(from, to);
  const char* wrong = what_is_wrong(MatrixDescriptor{from});
  expect(wrong == nullptr, wrong, from);
  expect(MatrixDescriptor{from}.swizzle() == Swizzle::kNone,
         "tcgen05.cp from a swizzled matrix is not emulated: descriptor #x",
         from);
  expect(tensor_lane(to) == 0 && tensor_column(to) + kCopiedColumns <= cta.columns,
         "tcgen05.cp to #x, # columns are allocated",
         to,
         cta.columns);
  issue({.a = from, .to = to});
}

MEGAMOE_DEVICE void expect_places(const TensorOperation& o, std::uint32_t columns) {
  const std::uint32_t b_columns = (columns + 31) / 32;
  expect(tensor_lane(o.to | o.a_scales | o.b_scales) == 0 && tensor_column(o.to) % 2 == 0,
         "tcgen05.mma to #x with scales at #x and #x: lane 0 and an even column are emulated",
         o.to,
         o.a_scales,
         o.b_scales);
  const auto expect_place = [&](std::uint32_t at, std::uint32_t size) {
    expect(tensor_column(at) + size <= cta.columns,
           "tcgen05.mma takes # columns from column #; # are allocated",
           size,
           tensor_column(at),
           cta.columns);
  };
  expect_place(o.to, columns);
  const auto expect_apart = [&](std::uint32_t at, std::uint32_t size) {
    expect_place(at, size);
    const std::uint32_t first = tensor_column(at);
    expect(first + size <= tensor_column(o.to) || first >= tensor_column(o.to) + columns,
           "the scales of tcgen05.mma at column # overlap its # sums at column #",
           first,
           columns,
           tensor_column(o.to));
  };
  expect_apart(o.a_scales, kCopiedColumns);
  expect_apart(o.b_scales, b_columns);
}

extern "C" __device__ __noinline__ void emulated_multiply(std::uint32_t to,
                                                          std::uint64_t a,
                                                          std::uint64_t b,
                                                          std::uint32_t instruction,
                                                          std::uint32_t a_scales,
                                                          std::uint32_t b_scales,
                                                          std::uint32_t accumulates) {
  expect_issuer(a ^ static_cast<std::uint64_t>(instruction) << 32,
                b ^ to ^ static_cast<std::uint64_t>(a_scales) << 20 ^
                    static_cast<std::uint64_t>(b_scales) << 40 ^ accumulates);
  const InstructionDescriptor d{instruction};
  for (const char* wrong :
       {what_is_wrong(d), what_is_wrong(MatrixDescriptor{a}), what_is_wrong(MatrixDescriptor{b})})
    expect(wrong == nullptr, wrong, instruction, a, b);
  const TensorOperation operation{a, b, 1, to, instruction, a_scales, b_scales, accumulates};
  expect_places(operation, d.columns());
  issue(operation);
}

// Everything that this thread issued has been done, or is done now: arrive where the mask says.
extern "C" __device__ __noinline__ void emulated_commit(std::uint32_t barrier, std::uint32_t mask) {
  expect_issuer(barrier, mask);
  expect(mask != 0 && mask < 4, "tcgen05.commit to the CTAs #x of a pair", mask);
  const std::uint32_t queued = cta.queued;
  for (std::uint32_t i = 0; i < queued; ++i)
    execute(queue()[i]);
  __syncwarp();
  if (lane() == 0) cta.queued = 0;
  jitter(16);
  fence_device();
  fence_cluster();
  __syncwarp();
  if (lane() < 2 && (mask >> lane() & 1) != 0)
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];"
                 :
                 : "r"(in_cta(barrier, lane()))
                 : "memory");
  __syncwarp();
}

}  // namespace megamoe::emulation
