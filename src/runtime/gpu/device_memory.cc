#include "runtime/gpu/device_memory.hpp"

#include <utility>

#include "runtime/gpu/cuda_call.hpp"

namespace megamoe {

DeviceMemory::DeviceMemory(int card) : card_(card) {
  const CardScope scope(card_);
  require_cuda(cudaStreamCreateWithFlags(&beside_calls_, cudaStreamNonBlocking),
               "cudaStreamCreateWithFlags");
}

DeviceMemory::~DeviceMemory() {
  cudaStreamDestroy(beside_calls_);
}

/// Of this rank: how many others share the card is not known here, and who gets nothing says so.
void DeviceMemory::require_room(int, std::uint64_t bytes) const {
  const CardScope scope(card_);
  std::size_t available = 0;
  std::size_t total = 0;
  require_cuda(cudaMemGetInfo(&available, &total), "cudaMemGetInfo");
  require(bytes <= available,
          ErrorCode::kRunFailed,
          "the symmetric memory of a rank needs ",
          bytes,
          " bytes; card ",
          card_,
          " has ",
          available,
          " available. A smaller capacity or pool needs less");
}

bool DeviceMemory::holds(const void* address) const {
  cudaPointerAttributes attributes{};
  if (cudaPointerGetAttributes(&attributes, address) != cudaSuccess) {
    cudaGetLastError();
    return false;
  }
  return attributes.type == cudaMemoryTypeDevice && attributes.device == card_;
}

std::shared_ptr<Segment> DeviceMemory::own_buffer(std::uint64_t bytes) {
  const CardScope scope(card_);
  void* memory = nullptr;
  const cudaError_t error = cudaMalloc(&memory, bytes);
  if (error != cudaSuccess) cudaGetLastError();
  require(error == cudaSuccess,
          ErrorCode::kRunFailed,
          "card ",
          card_,
          " does not give the ",
          bytes,
          " bytes that a rank needs: ",
          cudaGetErrorString(error));
  return Segment::held({memory, [](void* held) { cudaFree(held); }}, memory, bytes);
}

std::shared_ptr<Segment> DeviceMemory::allocate(const Link&, std::uint64_t bytes) {
  auto segment = own_buffer(bytes);
  fill(segment->base(), 0, bytes);
  return segment;
}

std::vector<std::shared_ptr<Segment>> DeviceMemory::share(Link& link,
                                                          const Meeting& meeting,
                                                          std::shared_ptr<Segment> mine) {
  MEGAMOE_CHECK(link.is_in_process());
  return link.share(meeting, std::move(mine));
}

void DeviceMemory::read(void* to, const void* from, std::uint64_t bytes) {
  if (bytes == 0) return;
  const CardScope scope(card_);
  require_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, beside_calls_),
               "copying from the card");
  require_cuda(cudaStreamSynchronize(beside_calls_), "copying from the card");
}

void DeviceMemory::write(void* to, const void* from, std::uint64_t bytes) {
  if (bytes == 0) return;
  const CardScope scope(card_);
  require_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, beside_calls_),
               "copying to the card");
  require_cuda(cudaStreamSynchronize(beside_calls_), "copying to the card");
}

void DeviceMemory::fill(void* to, int byte, std::uint64_t bytes) {
  if (bytes == 0) return;
  const CardScope scope(card_);
  require_cuda(cudaMemsetAsync(to, byte, bytes, beside_calls_), "filling memory of the card");
  require_cuda(cudaStreamSynchronize(beside_calls_), "filling memory of the card");
}

/// Not in one step: who sets the word in between is written over, and the word is set either way.
void DeviceMemory::set_if_zero(std::uint32_t* word, std::uint32_t value) {
  if (load(word) == 0) write(word, &value, sizeof value);
}

void DeviceMemory::zero(std::uint32_t* first, std::uint64_t words) {
  fill(first, 0, words * sizeof *first);
}

}  // namespace megamoe
