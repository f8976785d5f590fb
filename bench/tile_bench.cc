// The tile kernel alone, in the layer of the README: H 4096, I 2048, 32 experts, K 6, random
// routing, for T tokens, without the protocol. Beside it the two ceilings of the computer: what its
// memory delivers and what its multipliers do on registers. No clocks are asserted.
#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstring>
#include <ctime>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "machine/cpu/tile/tile.hpp"
#include "machine/cpu/tile/tile_functions.hpp"
#include "megamoe/error.hpp"

namespace megamoe::cpu {
namespace {

constexpr int kHidden = 4096;
constexpr int kIntermediate = 2048;
constexpr int kExperts = 32;
constexpr int kTopk = 6;
constexpr int kThreads = 2;
constexpr std::size_t kLinear1Bytes = packed_bytes(2 * kIntermediate, kHidden);
constexpr std::size_t kExpertBytes = kLinear1Bytes + packed_bytes(kHidden, kIntermediate);
constexpr double kFlopsOfRow = 6.0 * kHidden * kIntermediate;

std::byte* allocate(std::size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw Error(ErrorCode::kRunFailed, "no memory for the bench");
  madvise(memory, bytes, MADV_HUGEPAGE);
  return static_cast<std::byte*>(memory);
}

// Packed experts with random codes. Packing is not what is measured: one expert is packed and its
// codes are copied to the others.
const std::byte* experts() {
  static const std::byte* const memory = [] {
    std::mt19937 random(1);
    const auto fill = [&random](std::size_t count, unsigned mask, unsigned base) {
      std::vector<std::uint8_t> bytes(count);
      for (std::uint8_t& byte : bytes)
        byte = static_cast<std::uint8_t>((random() & mask) + base);
      return bytes;
    };
    constexpr std::size_t kElements = std::size_t{kHidden} * kIntermediate;
    const auto linear1 = fill(kElements, 255, 0);
    const auto linear1_scale = fill(kElements / 16, 3, 118);
    const auto linear2 = fill(kElements / 2, 255, 0);
    const auto linear2_scale = fill(kElements / 32, 3, 118);
    const WeightView view{.linear1 = linear1.data(),
                          .linear1_scale = linear1_scale.data(),
                          .linear2 = linear2.data(),
                          .linear2_scale = linear2_scale.data()};
    Problem problem;
    problem.hidden = kHidden;
    problem.intermediate = kIntermediate;
    std::byte* const bytes = allocate(kExperts * kExpertBytes);
    pack_linear1(view, problem, bytes);
    pack_linear2(view, problem, bytes + kLinear1Bytes);
    for (int expert = 1; expert < kExperts; ++expert)
      std::memcpy(bytes + static_cast<std::size_t>(expert) * kExpertBytes, bytes, kExpertBytes);
    return bytes;
  }();
  return memory;
}

PackedMatrix linear1_of(int expert) {
  return {.bytes = experts() + static_cast<std::size_t>(expert) * kExpertBytes,
          .rows = 2 * kIntermediate,
          .k = kHidden};
}
PackedMatrix linear2_of(int expert) {
  return {.bytes = experts() + static_cast<std::size_t>(expert) * kExpertBytes + kLinear1Bytes,
          .rows = kHidden,
          .k = kIntermediate};
}

// Rows of one expert that are multiplied together.
struct RowTile {
  int expert;
  int first_row;
  int num_rows;
};

struct Work {
  std::vector<RowTile> tiles;
  int rows = 0;
  int active_experts = 0;
  std::byte* input = nullptr;
  std::byte* middle = nullptr;
  std::vector<float> weights;

  explicit Work(int tokens) {
    std::mt19937 random(7);
    std::vector<int> counts(kExperts);
    std::vector<int> ids(kExperts);
    std::iota(ids.begin(), ids.end(), 0);
    for (int token = 0; token < tokens; ++token) {
      std::shuffle(ids.begin(), ids.end(), random);
      for (int k = 0; k < kTopk; ++k)
        ++counts[static_cast<std::size_t>(ids[static_cast<std::size_t>(k)])];
    }
    for (int expert = 0; expert < kExperts; ++expert) {
      int left = counts[static_cast<std::size_t>(expert)];
      active_experts += left > 0 ? 1 : 0;
      for (; left > 0; left -= tiles.back().num_rows) {
        tiles.push_back({expert, rows, std::min(left, kMaxTileRows)});
        rows += tiles.back().num_rows;
      }
    }
    weights.assign(static_cast<std::size_t>(rows), 0.25F);
    input = allocate(static_cast<std::size_t>(rows) * row_bytes(kHidden));
    middle = allocate(static_cast<std::size_t>(rows) * row_bytes(kIntermediate));
    fill_input(random);
  }
  ~Work() {
    munmap(input, static_cast<std::size_t>(rows) * row_bytes(kHidden));
    munmap(middle, static_cast<std::size_t>(rows) * row_bytes(kIntermediate));
  }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

 private:
  void fill_input(std::mt19937& random) const {
    const TileKernel kernel;
    std::vector<std::uint8_t> codes(kHidden);
    std::vector<std::uint8_t> scales(kHidden / kGroupSize);
    for (int row = 0; row < rows; ++row) {
      for (std::uint8_t& code : codes)
        code = static_cast<std::uint8_t>((random() & 0xBF) | 0x20);
      for (std::uint8_t& scale : scales)
        scale = static_cast<std::uint8_t>(116 + (random() & 3));
      kernel.store_row(codes.data(),
                       scales.data(),
                       kHidden,
                       input + static_cast<std::size_t>(row) * row_bytes(kHidden));
    }
  }
};

void run_linear1(const TileKernel& kernel,
                 const Work& work,
                 const RowTile& tile,
                 int channel,
                 int channels,
                 TileScratch& scratch) {
  const auto row = static_cast<std::size_t>(tile.first_row);
  kernel.linear1(
      {.weights = linear1_of(tile.expert),
       .first_channel = channel,
       .num_channels = channels,
       .input = {work.input + row * row_bytes(kHidden), row_bytes(kHidden)},
       .num_rows = tile.num_rows,
       .routing_weights = work.weights.data() + row,
       .activation = {},
       .output = {work.middle + row * row_bytes(kIntermediate), row_bytes(kIntermediate)}},
      scratch);
}

void run_linear2(const TileKernel& kernel,
                 const Work& work,
                 const RowTile& tile,
                 int channel,
                 int channels,
                 Bfloat16* output,
                 TileScratch& scratch) {
  const auto row = static_cast<std::size_t>(tile.first_row);
  kernel.linear2({.weights = linear2_of(tile.expert),
                  .first_channel = channel,
                  .num_channels = channels,
                  .input = {work.middle + row * row_bytes(kIntermediate), row_bytes(kIntermediate)},
                  .num_rows = tile.num_rows,
                  .routing_weights = work.weights.data() + row,
                  .output = output,
                  .output_stride = static_cast<std::size_t>(channels)},
                 scratch);
}

struct Seconds {
  double wall = 0;
  double processor = 0;  // without the time in which other programs had the core
};

double thread_processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// As the protocol does it: block b = (tile, n) belongs to worker b mod W.
class Crew {
 public:
  explicit Crew(std::function<void(int)> work)
      : work_(std::move(work)), gate_(kThreads), second_([this] { run_second(); }) {}
  ~Crew() {
    is_over_ = true;
    gate_.arrive_and_wait();
    second_.join();
  }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  // What both threads take together, and what the busier of them computes.
  Seconds run() {
    gate_.arrive_and_wait();
    const auto start = std::chrono::steady_clock::now();
    run_timed(0);
    gate_.arrive_and_wait();
    const auto end = std::chrono::steady_clock::now();
    return {.wall = std::chrono::duration<double>(end - start).count(),
            .processor = std::max(processor_seconds_[0], processor_seconds_[1])};
  }
  void meet() { gate_.arrive_and_wait(); }

 private:
  void run_second() {
    for (;;) {
      gate_.arrive_and_wait();
      if (is_over_) return;
      run_timed(1);
      gate_.arrive_and_wait();
    }
  }
  void run_timed(int worker) {
    const double start = thread_processor_seconds();
    work_(worker);
    processor_seconds_[worker] = thread_processor_seconds() - start;
  }

  std::function<void(int)> work_;
  bool is_over_ = false;
  double processor_seconds_[kThreads] = {};
  std::barrier<> gate_;
  std::thread second_;
};

void run_worker(const TileKernel& kernel, const Work& work, int worker, Crew& crew) {
  constexpr int kChannels = 256;
  thread_local const auto scratch = std::make_unique<TileScratch>();
  thread_local std::vector<Bfloat16> output(std::size_t{kMaxTileRows} * kChannels);
  int block = 0;
  for (const RowTile& tile : work.tiles)
    for (int channel = 0; channel < 2 * kIntermediate; channel += kChannels)
      if (block++ % kThreads == worker)
        run_linear1(kernel, work, tile, channel, kChannels, *scratch);
  crew.meet();
  block = 0;
  for (const RowTile& tile : work.tiles)
    for (int channel = 0; channel < kHidden; channel += kChannels)
      if (block++ % kThreads == worker)
        run_linear2(kernel, work, tile, channel, kChannels, output.data(), *scratch);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Rates are those of the quickest run: the computer may be busy with other things, and only that
// one tells what the code can do.
void time(benchmark::State& state, Crew& crew, double flops, double bytes) {
  std::vector<double> wall;
  std::vector<double> processor;
  for (auto _ : state) {
    const Seconds seconds = crew.run();
    wall.push_back(seconds.wall);
    processor.push_back(seconds.processor);
    state.SetIterationTime(seconds.wall);
  }
  const double least = *std::min_element(wall.begin(), wall.end());
  state.counters["min ms"] = least * 1e3;
  state.counters["median ms"] = median(wall) * 1e3;
  state.counters["processor ms"] = median(processor) * 1e3;
  if (flops > 0) state.counters["GFLOP/s"] = flops / least * 1e-9;
  if (bytes > 0) state.counters["GB/s"] = bytes / least * 1e-9;
}

// arg 0: tokens; arg 1: instruction set
void bench_layer(benchmark::State& state) {
  const Work work(static_cast<int>(state.range(0)));
  const TileKernel kernel(static_cast<InstructionSet>(state.range(1)));
  state.SetLabel(std::string(name(kernel.instruction_set())));
  std::unique_ptr<Crew> crew;
  crew = std::make_unique<Crew>([&](int worker) { run_worker(kernel, work, worker, *crew); });
  time(state,
       *crew,
       kFlopsOfRow * work.rows,
       static_cast<double>(kExpertBytes) * work.active_experts);
}

// Each thread reads its half of the packed experts.
void bench_memory(benchmark::State& state) {
  constexpr std::size_t kBytes = kExperts * kExpertBytes / kThreads / 4096 * 4096;
  Crew crew([](int worker) {
    const std::byte* const bytes = experts() + static_cast<std::size_t>(worker) * kBytes;
    std::uint64_t sums[8] = {};
    for (std::size_t at = 0; at < kBytes; at += sizeof sums) {
      std::uint64_t line[8];
      std::memcpy(line, bytes + at, sizeof line);
      __builtin_prefetch(bytes + at + 4096);
      for (int i = 0; i < 8; ++i)
        sums[i] ^= line[i];
    }
    benchmark::DoNotOptimize(sums);
  });
  time(state, crew, 0, kThreads * static_cast<double>(kBytes));
}

void bench_multipliers(benchmark::State& state) {
  constexpr int kRounds = 1'000'000;
  const auto set = static_cast<InstructionSet>(state.range(0));
  state.SetLabel(std::string(name(set)));
  const TileFunctions& functions = *functions_of(set);
  Crew crew([&functions](int) { benchmark::DoNotOptimize(functions.multiply_registers(kRounds)); });
  time(state, crew, kThreads * functions.flops_of_round * kRounds, 0);
}

void declare_all() {
  const auto declared = [](const char* label, void (*run)(benchmark::State&)) {
    return benchmark::RegisterBenchmark(label, run)->UseManualTime()->Unit(benchmark::kMillisecond);
  };
  declared("memory", bench_memory);
  for (const InstructionSet set : supported_instruction_sets()) {
    declared("multipliers", bench_multipliers)->ArgName("set")->Arg(static_cast<int>(set));
    for (const int tokens : {1, 4, 8, 16, 32, 64, 128, 512})
      declared("layer", bench_layer)->ArgNames({"T", "set"})->Args({tokens, static_cast<int>(set)});
  }
}

}  // namespace
}  // namespace megamoe::cpu

int main(int argc, char** argv) {
  megamoe::cpu::declare_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
