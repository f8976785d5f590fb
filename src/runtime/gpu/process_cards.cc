#include "runtime/gpu/process_cards.hpp"

#include "runtime/gpu/cards.hpp"
#include "runtime/gpu/cuda_call.hpp"
#include "runtime/gpu/placement.hpp"
#include "runtime/group/agree.hpp"

namespace megamoe {
namespace {

/// The same in every process of this computer, whatever numbers a launcher gave the cards.
std::string place_on_bus(int card) {
  constexpr int kRoom = 32;
  char text[kRoom] = {};
  require_cuda(cudaDeviceGetPCIBusId(text, kRoom, card), "cudaDeviceGetPCIBusId");
  return text;
}

}  // namespace

void require_own_cards(Link& link, int card, std::uint64_t timeout_ms) {
  const std::vector<std::string> places =
      link.gather({"the placing of ranks on cards", timeout_ms}, place_on_bus(card));
  require_cards_apart(places);
  agree(link, {"the look at the peers' cards", timeout_ms}, [&] {
    for (const std::string& place : places) {
      int other = 0;
      if (cudaDeviceGetByPCIBusId(&other, place.c_str()) != cudaSuccess) {
        cudaGetLastError();  // a card that only its rank sees: NCCL knows whether it is in reach
        continue;
      }
      if (other == card) continue;
      const std::string why_not = why_not_peers(card, other);
      require(why_not.empty(),
              ErrorCode::kUnsupportedMachine,
              "the ranks are on ",
              places.size(),
              " cards that can't work together: ",
              why_not);
    }
    return std::string();
  });
}

}  // namespace megamoe
