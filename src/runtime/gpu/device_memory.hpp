#pragma once

#include <cuda_runtime_api.h>

#include "runtime/memory/memory_kind.hpp"

namespace megamoe {

/// Plain memory of one card, shared between ranks that are threads of one process: each reaches the
/// others' as it is, on the same card or through peer access. The host copies on a stream that no
/// call is on, so that it may look while a call runs.
class DeviceMemory : public MemoryKind {
 public:
  explicit DeviceMemory(int card);
  ~DeviceMemory() override;
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  int card() const { return card_; }

  void require_room(int ranks, std::uint64_t bytes) const override;
  bool holds(const void* address) const override;
  std::shared_ptr<Segment> own_buffer(std::uint64_t bytes) override;
  std::shared_ptr<Segment> allocate(const Link& link, std::uint64_t bytes) override;
  std::vector<std::shared_ptr<Segment>> share(Link& link,
                                              const Meeting& meeting,
                                              std::shared_ptr<Segment> mine) override;

  void read(void* to, const void* from, std::uint64_t bytes) override;
  void write(void* to, const void* from, std::uint64_t bytes) override;
  void fill(void* to, int byte, std::uint64_t bytes) override;
  std::uint32_t load(const std::uint32_t* word) override { return copy_of(word); }
  std::uint64_t load(const std::uint64_t* word) override { return copy_of(word); }
  void set_if_zero(std::uint32_t* word, std::uint32_t value) override;
  void zero(std::uint32_t* first, std::uint64_t words) override;

 private:
  int card_;
  cudaStream_t beside_calls_ = nullptr;
};

}  // namespace megamoe
