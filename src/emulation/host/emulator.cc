#include "emulation/host/emulator.hpp"

#include <cstring>
#include <vector>

#include "base/check.hpp"
#include "emulation/hardware.hpp"
#include "emulation/host/report_text.hpp"
#include "emulation/host/tensor_map.hpp"
#include "machine/cuda/launch.hpp"

namespace megamoe::emulation {
namespace {

using gpu::expect_success;

template <class T>
struct DeviceArray {
  T* data = nullptr;

  explicit DeviceArray(std::size_t count) {
    void* memory = nullptr;
    expect_success(cudaMalloc(&memory, count * sizeof(T)), "the emulation's device memory");
    data = static_cast<T*>(memory);
  }
  ~DeviceArray() { cudaFree(data); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
};

// In host memory, so that it can be read after a trap.
struct PinnedReport {
  Report* data = nullptr;

  PinnedReport() {
    void* memory = nullptr;
    expect_success(cudaMallocHost(&memory, sizeof(Report)), "the emulation's report");
    std::memset(memory, 0, sizeof(Report));
    data = static_cast<Report*>(memory);
  }
  ~PinnedReport() { cudaFreeHost(data); }
  PinnedReport(const PinnedReport&) = delete;
  PinnedReport& operator=(const PinnedReport&) = delete;
};

// For copies that must neither wait for kernels of other streams nor hold them up.
struct CopyStream {
  cudaStream_t stream = nullptr;

  CopyStream() {
    expect_success(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                   "the emulation's stream");
  }
  ~CopyStream() { cudaStreamDestroy(stream); }
  CopyStream(const CopyStream&) = delete;
  CopyStream& operator=(const CopyStream&) = delete;
};

}  // namespace

struct Emulator::State {
  EmulatorOptions options;
  DeviceArray<std::uint32_t> tensor_memory;
  DeviceArray<TensorOperation> queues;
  DeviceArray<MapEntry> device_maps{kMaps};
  PinnedReport report;
  CopyStream copies;
  std::vector<MapEntry> maps;
  std::vector<cudaLibrary_t> libraries;

  explicit State(const EmulatorOptions& chosen)
      : options(chosen),
        tensor_memory(static_cast<std::size_t>(chosen.ctas) * kTensorLanes * kTensorColumns),
        queues(static_cast<std::size_t>(chosen.ctas) * kQueueLength) {}
  ~State() {
    for (cudaLibrary_t library : libraries)
      cudaLibraryUnload(library);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  Settings settings() const {
    return {.tensor_memory = tensor_memory.data,
            .queues = queues.data,
            .maps = device_maps.data,
            .report = report.data,
            .timeout_ns = options.timeout_ms * 1'000'000,
            .magic = kMagic,
            .num_maps = static_cast<std::uint32_t>(maps.size()),
            .num_ctas = static_cast<std::uint32_t>(options.ctas),
            .is_deferred = options.modes.is_deferred ? 1U : 0U,
            .has_jitter = options.modes.has_jitter ? 1U : 0U};
  }
};

Emulator::Emulator(const EmulatorOptions& options) : state_(std::make_unique<State>(options)) {}
Emulator::~Emulator() = default;
Emulator::Emulator(Emulator&&) noexcept = default;
Emulator& Emulator::operator=(Emulator&&) noexcept = default;

const void* Emulator::load(const Cubin& cubin) {
  cudaLibrary_t library{};
  expect_success(
      cudaLibraryLoadData(&library, cubin.data, nullptr, nullptr, 0, nullptr, nullptr, 0),
      cubin.name);
  state_->libraries.push_back(library);
  unsigned count = 0;
  expect_success(cudaLibraryGetKernelCount(&count, library), cubin.name);
  require(count == 1,
          ErrorCode::kInternal,
          cubin.name,
          " holds ",
          count,
          " kernels; an emulated unit has one");
  cudaKernel_t kernel{};
  expect_success(cudaLibraryEnumerateKernels(&kernel, 1, library), cubin.name);
  return reinterpret_cast<const void*>(kernel);
}

CUtensorMap Emulator::encode(const TensorMapRequest& request) {
  MapEntry entry = entry_of(request);
  const CUtensorMap map = gpu::encode_tensor_map(in_bytes(request));
  static_assert(sizeof map == kMapBytes);
  std::memcpy(entry.content, &map, kMapBytes);
  for (const MapEntry& known : state_->maps) {
    if (std::memcmp(known.content, entry.content, kMapBytes) != 0) continue;
    // The device tells maps apart by their content alone.
    require(std::memcmp(&known, &entry, sizeof entry) == 0,
            ErrorCode::kInvalidArgument,
            "two tensor maps of different meaning are the same bytes: one of FP4 and one of bytes "
            "over the same memory");
    return map;
  }
  require(state_->maps.size() < kMaps,
          ErrorCode::kInvalidArgument,
          "the emulation knows at most ",
          kMaps,
          " tensor maps");
  state_->maps.push_back(entry);
  return map;
}

void Emulator::prepare() {
  const State& state = *state_;
  const auto upload = [&](void* to, const void* from, std::size_t bytes, const char* what) {
    expect_success(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, state.copies.stream),
                   what);
  };
  if (!state.maps.empty())
    upload(state.device_maps.data,
           state.maps.data(),
           state.maps.size() * sizeof(MapEntry),
           "the emulation's tensor maps");
  const Settings settings = state.settings();
  for (cudaLibrary_t library : state.libraries) {
    void* place = nullptr;
    std::size_t bytes = 0;
    expect_success(cudaLibraryGetGlobal(&place, &bytes, library, "emulated_settings"),
                   "emulated_settings");
    MEGAMOE_CHECK(bytes == sizeof settings);
    upload(place, &settings, sizeof settings, "emulated_settings");
  }
  expect_success(cudaStreamSynchronize(state.copies.stream), "preparing the emulation");
}

void Emulator::check(cudaError_t result) const {
  const Report& report = *state_->report.data;
  require(report.is_set == 0, ErrorCode::kRunFailed, "emulated Blackwell: ", text_of(report));
  expect_success(result, "emulated Blackwell");
}

}  // namespace megamoe::emulation
