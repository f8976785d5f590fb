#pragma once

#include <cstddef>
#include <cstdint>

#include "instructions.cuh"
#include "machine/cuda/pipe.cuh"
#include "machine/sm100/descriptor.hpp"
#include "machine/sm100/tcgen05.cuh"
#include "tile_args.hpp"

// The main loop of the Blackwell kernel and nothing else: two loaders, one issuing warp in the
// leader, epilogue warps that write sums as they are. Every layout, descriptor and column number is
// the machine's own.
namespace megamoe::test {

namespace tcgen05 = sm100::tcgen05;
inline constexpr std::uint32_t kLeader = 0;

// Where one product lies in tensor memory.
struct Product {
  std::uint32_t sums;
  tcgen05::ScaleColumns scales;
};

template <sm100::Plan kPlan>
struct TileKernel {
  using Storage = sm100::SharedStorage<kPlan>;
  using Stage = sm100::Stage<kPlan>;
  static constexpr int kIssueWarp = kPlan.epilogue_warps();
  static constexpr int kEpilogueArrivals = sm100::kPairCtas * kPlan.epilogue_warps();
  static constexpr std::uint32_t kTokenScaleBytes = sm100::token_scale_bytes(kPlan.block_m);

  const TileArgs& args;
  std::uint32_t base;  // of Storage

  MEGAMOE_DEVICE std::uint32_t accumulator(int index) const {
    return base + static_cast<std::uint32_t>(
                      offsetof(Storage, control) + offsetof(sm100::Control<kPlan>, accumulators) +
                      static_cast<std::size_t>(index) * sizeof(sm100::AccumulatorSlot));
  }
  MEGAMOE_DEVICE std::uint32_t tmem_word() const {
    return base + static_cast<std::uint32_t>(offsetof(Storage, control) +
                                             offsetof(sm100::Control<kPlan>, tmem));
  }
  static MEGAMOE_DEVICE int warp() { return static_cast<int>(threadIdx.x) / sm100::kWarpThreads; }
  static MEGAMOE_DEVICE int lane() { return static_cast<int>(threadIdx.x) % sm100::kWarpThreads; }

  // Barriers and columns, before either CTA of the pair goes on.
  MEGAMOE_DEVICE void begin() const {
    if (threadIdx.x == 0) {
      for (int s = 0; s < kPlan.stages; ++s) {
        const std::uint32_t stage = base + static_cast<std::uint32_t>(s * sizeof(Stage));
        ptx::mbarrier_init(stage + offsetof(Stage, full), 2);
        ptx::mbarrier_init(stage + offsetof(Stage, empty), 1);
        ptx::mbarrier_init(stage + offsetof(Stage, peer_full), 1);
      }
      for (int i = 0; i < sm100::kAccumulators; ++i) {
        ptx::mbarrier_init(accumulator(i) + offsetof(sm100::AccumulatorSlot, full), 1);
        ptx::mbarrier_init(accumulator(i) + offsetof(sm100::AccumulatorSlot, empty),
                           kEpilogueArrivals);
      }
      ptx::fence_mbarrier_init();
    }
    if (warp() == kIssueWarp + 2) tcgen05::allocate<kPlan.columns().allocated()>(tmem_word());
    tcgen05::fence_before_telling();
    __syncthreads();
    ptx::cluster_sync();
    tcgen05::fence_after_being_told();
  }

  MEGAMOE_DEVICE void end() const {
    tcgen05::fence_before_telling();
    __syncthreads();
    ptx::cluster_sync();
    tcgen05::fence_after_being_told();
    if (warp() == kIssueWarp + 2)
      tcgen05::deallocate<kPlan.columns().allocated()>(ptx::load_shared_u32(tmem_word()));
  }

  // Both CTAs' codes complete on the leader's barrier, scales on each one's own.
  MEGAMOE_DEVICE void load_weights() const {
    constexpr std::uint32_t kCodes = sm100::kPairCtas * sm100::kPackedTileBytes;
    Producer<Stage, kPlan.stages> stages(base);
    const int rank = static_cast<int>(ptx::cluster_rank());
    const std::byte* scales = args.weight_scales + rank * args.steps * sm100::kScaleCopyBytes;
    for (int i = 0; i < args.tiles * args.steps; ++i) {
      const std::uint32_t stage = stages.acquire();
      const int step = i % args.steps;
      const std::uint32_t full = stages.full_barrier(stage);
      if (tcgen05::elected()) {
        copy_box(stage + static_cast<std::uint32_t>(offsetof(Stage, weights)),
                 &args.codes,
                 step * sm100::kStepDepth,
                 rank * sm100::kBlockRows,
                 in_leader(full));
        ptx::bulk_copy(stage + static_cast<std::uint32_t>(offsetof(Stage, weight_scales)),
                       scales + step * sm100::kScaleCopyBytes,
                       sm100::kScaleCopyBytes,
                       full);
        stages.commit(stage, sm100::kScaleCopyBytes + (rank == 0 ? kCodes : 0));
      }
      __syncwarp();
    }
  }

  // Each CTA has half of the tokens and all of their scales. The peer tells the leader when it has
  // all of its own.
  MEGAMOE_DEVICE void load_tokens() const {
    Producer<Stage, kPlan.stages> stages(base);
    Consumer<Stage, kPlan.stages> filled(base);
    const int rank = static_cast<int>(ptx::cluster_rank());
    for (int i = 0; i < args.tiles * args.steps; ++i) {
      const int tile = i / args.steps;
      const int rows = sm100::half_tokens(args.rows_of(tile, kPlan.block_m));
      const auto bytes = static_cast<std::uint32_t>(rows * sm100::kRowBytes);
      const std::uint32_t stage = stages.acquire();
      const std::uint32_t full = stages.full_barrier(stage);
      if (tcgen05::elected()) {
        ptx::bulk_copy(
            stage + static_cast<std::uint32_t>(offsetof(Stage, tokens)),
            args.tokens + std::int64_t{i} * sm100::token_tile_bytes(kPlan.block_m) + rank * bytes,
            bytes,
            full);
        ptx::bulk_copy(stage + static_cast<std::uint32_t>(offsetof(Stage, token_scales)),
                       args.token_scales + std::int64_t{i} * kTokenScaleBytes,
                       kTokenScaleBytes,
                       full);
        stages.commit(stage, bytes + kTokenScaleBytes);
      }
      __syncwarp();
      if (rank == 0) continue;
      const std::uint32_t own = filled.wait();
      if (lane() == 0)
        ptx::mbarrier_arrive_at(own + static_cast<std::uint32_t>(offsetof(Stage, peer_full)),
                                kLeader);
      __syncwarp();
    }
  }

  MEGAMOE_DEVICE void issue_step(std::uint32_t stage, const Product& at, int rows, int step) const {
    constexpr sm100::SharedLayout kTiles = sm100::kTileLayout;
    constexpr sm100::SharedLayout kScales = sm100::kScaleLayout;
    const auto in_stage = [&](std::size_t offset) {
      return stage + static_cast<std::uint32_t>(offset);
    };
    for (int copy = 0; copy < sm100::token_scale_copies(kPlan.block_m); ++copy)
      tcgen05::copy_scales(
          at.scales.tokens + static_cast<std::uint32_t>(copy * sm100::kScaleCopyColumns),
          kScales.descriptor(in_stage(offsetof(Stage, token_scales) +
                                      static_cast<std::size_t>(copy) * sm100::kScaleCopyBytes)));
    tcgen05::copy_scales(at.scales.weights,
                         kScales.descriptor(in_stage(offsetof(Stage, weight_scales))));
    const std::uint64_t weights = kTiles.descriptor(in_stage(offsetof(Stage, weights)));
    const std::uint64_t tokens = kTiles.descriptor(in_stage(offsetof(Stage, tokens)));
    const std::uint32_t instruction = sm100::instruction_descriptor(sm100::mma_tokens(rows));
    MEGAMOE_UNROLL
    for (int k = 0; k < sm100::kMmasPerStep; ++k)
      tcgen05::multiply(at.sums,
                        weights + static_cast<std::uint64_t>(k) * sm100::kDescriptorNextK,
                        tokens + static_cast<std::uint64_t>(k) * sm100::kDescriptorNextK,
                        sm100::with_scale_byte(instruction, k),
                        at.scales,
                        step > 0 || k > 0);
  }

  // The leader's alone.
  MEGAMOE_DEVICE void issue() const {
    constexpr sm100::TmemColumns kColumns = kPlan.columns();
    Consumer<Stage, kPlan.stages> stages(base);
    const std::uint32_t tmem = ptx::load_shared_u32(tmem_word());
    for (int tile = 0; tile < args.tiles; ++tile) {
      const int index = tile % sm100::kAccumulators;
      const std::uint32_t slot = accumulator(index);
      const auto lap = static_cast<std::uint32_t>(tile / sm100::kAccumulators);
      wait_for_phase(slot + offsetof(sm100::AccumulatorSlot, empty), (lap & 1) ^ 1);
      const Product at{tmem + static_cast<std::uint32_t>(kColumns.accumulator(index)),
                       {.weights = tmem + static_cast<std::uint32_t>(kColumns.weight_scales()),
                        .tokens = tmem + static_cast<std::uint32_t>(kColumns.token_scales())}};
      for (int step = 0; step < args.steps; ++step) {
        const std::uint32_t parity = stages.parity();
        const std::uint32_t stage = stages.wait();
        wait_for_phase(stage + offsetof(Stage, peer_full), parity);
        tcgen05::fence_after_being_told();
        __syncwarp();
        if (tcgen05::elected()) {
          issue_step(stage, at, args.rows_of(tile, kPlan.block_m), step);
          tcgen05::commit_to_pair(stage + static_cast<std::uint32_t>(offsetof(Stage, empty)));
          if (step + 1 == args.steps)
            tcgen05::commit_to_pair(
                slot + static_cast<std::uint32_t>(offsetof(sm100::AccumulatorSlot, full)));
        }
        __syncwarp();
      }
    }
  }

  // Both shapes of loads, by turns.
  MEGAMOE_DEVICE void store_chunk(std::uint32_t from, float* to, bool is_by_pairs) const {
    std::uint32_t v[8];
    for (int half = 0; half < 2; ++half) {
      if (is_by_pairs)
        load_16x256b_x2(from + sm100::lane_half(half), v);
      else
        load_32x32b_x8(from + static_cast<std::uint32_t>(half * 8), v);
      tcgen05::wait_for_loads();
      MEGAMOE_UNROLL
      for (int i = 0; i < 8; ++i) {
        const int row = is_by_pairs ? half * 16 + lane() / 4 + i / 2 % 2 * 8 : lane();
        const int column = is_by_pairs ? i / 4 * 8 + lane() % 4 * 2 + i % 2 : half * 8 + i;
        to[row * kPlan.block_m + column] = __uint_as_float(v[i]);
      }
    }
  }

  MEGAMOE_DEVICE void store() const {
    constexpr sm100::TmemColumns kColumns = kPlan.columns();
    const std::uint32_t tmem = ptx::load_shared_u32(tmem_word());
    const int quarter = warp() % 4;
    const int first_row = static_cast<int>(ptx::cluster_rank()) * sm100::kBlockRows + quarter * 32;
    for (int tile = 0; tile < args.tiles; ++tile) {
      const int index = tile % sm100::kAccumulators;
      const std::uint32_t slot = accumulator(index);
      const auto lap = static_cast<std::uint32_t>(tile / sm100::kAccumulators);
      wait_for_phase(slot + offsetof(sm100::AccumulatorSlot, full), lap & 1);
      tcgen05::fence_after_being_told();
      const int tokens = sm100::mma_tokens(args.rows_of(tile, kPlan.block_m));
      for (int chunk = warp() / 4; chunk * sm100::kChunkTokens < tokens;
           chunk += kPlan.epilogue_warpgroups) {
        const int column = chunk * sm100::kChunkTokens;
        const std::int64_t row = std::int64_t{tile} * sm100::kPairRows + first_row;
        store_chunk(tmem + static_cast<std::uint32_t>(kColumns.accumulator(index) + column),
                    args.sums + row * kPlan.block_m + column,
                    tile % 2 == 0);
      }
      tcgen05::fence_before_telling();
      __syncwarp();
      if (lane() == 0)
        ptx::mbarrier_arrive_at(
            slot + static_cast<std::uint32_t>(offsetof(sm100::AccumulatorSlot, empty)), kLeader);
    }
  }
};

template <class Choice>
__global__ void __launch_bounds__(Choice::kPlan.threads(), 1)
    multiply_tiles(const __grid_constant__ TileArgs args) {
  extern __shared__ __align__(1024) std::byte dynamic_memory[];
  using Kernel = TileKernel<Choice::kPlan>;
  const Kernel kernel{args, ptx::opaque(ptx::shared_address(dynamic_memory))};
  kernel.begin();
  const int warp = Kernel::warp();
  if (warp < Kernel::kIssueWarp)
    kernel.store();
  else if (warp == Kernel::kIssueWarp)
    kernel.load_weights();
  else if (warp == Kernel::kIssueWarp + 1)
    kernel.load_tokens();
  else if (warp == Kernel::kIssueWarp + 2 && ptx::cluster_rank() == 0)
    kernel.issue();
  kernel.end();
}

}  // namespace megamoe::test
