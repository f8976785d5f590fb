#include "runtime/gpu/cards.hpp"

#include "runtime/gpu/cuda_call.hpp"

namespace megamoe {
namespace {

CardFacts facts_of(int card) {
  cudaDeviceProp properties{};
  require_cuda(cudaGetDeviceProperties(&properties, card), "cudaGetDeviceProperties");
  return {.name = properties.name,
          .sms = properties.multiProcessorCount,
          .major = properties.major,
          .minor = properties.minor,
          .memory = properties.totalGlobalMem};
}

}  // namespace

std::vector<CardFacts> visible_cards() {
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess) {
    cudaGetLastError();  // it is no error of the next call's
    return {};
  }
  std::vector<CardFacts> cards;
  for (int card = 0; card < count; ++card)
    cards.push_back(facts_of(card));
  return cards;
}

std::string why_no_cards() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess && count > 0) return {};
  cudaGetLastError();
  return error == cudaSuccess ? "the driver knows no card" : cudaGetErrorString(error);
}

std::string versions_text() {
  constexpr int kMajor = 1000;  // 13000 is 13.0
  constexpr int kMinor = 10;
  const auto text = [](int version) {
    return sentence(version / kMajor, ".", version % kMajor / kMinor);
  };
  if (std::string why = why_no_cards(); !why.empty()) return why;
  int driver = 0;
  int runtime = 0;
  require_cuda(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  require_cuda(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  return sentence("the driver knows CUDA ", text(driver), ", this build is of ", text(runtime));
}

std::string card_text(int card, const CardFacts& facts) {
  return sentence("card ", card, " (", facts.name, ")");
}

std::string why_not_peers(int card, int other) {
  int can_access = 0;
  require_cuda(cudaDeviceCanAccessPeer(&can_access, card, other), "cudaDeviceCanAccessPeer");
  if (can_access == 0)
    return sentence("card ", card, " has no access to the memory of card ", other);
  int has_atomics = 0;
  require_cuda(
      cudaDeviceGetP2PAttribute(&has_atomics, cudaDevP2PAttrNativeAtomicSupported, card, other),
      "cudaDeviceGetP2PAttribute");
  if (has_atomics == 0)
    return sentence("card ", card, " has no atomic operations on the memory of card ", other);
  return {};
}

void enable_peer_access(int card, const std::vector<int>& others) {
  const CardScope scope(card);
  for (const int other : others) {
    if (other == card) continue;
    const cudaError_t error = cudaDeviceEnablePeerAccess(other, 0);
    if (error == cudaErrorPeerAccessAlreadyEnabled)
      cudaGetLastError();
    else
      require_cuda(error, "cudaDeviceEnablePeerAccess");
  }
}

}  // namespace megamoe
