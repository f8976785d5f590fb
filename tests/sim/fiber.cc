#include "sim/fiber.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>

namespace megamoe::sim {
namespace {

constexpr std::size_t kStackBytes = std::size_t{256} << 10;

std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace

Stack::Stack() {
  void* mapping = mmap(nullptr,
                       page_bytes() + kStackBytes,
                       PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                       -1,
                       0);
  if (mapping == MAP_FAILED) throw std::bad_alloc();
  mapping_ = static_cast<std::byte*>(mapping);
  mprotect(mapping_, page_bytes(), PROT_NONE);
}

Stack::~Stack() {
  if (mapping_ != nullptr) munmap(mapping_, page_bytes() + kStackBytes);
}

Stack::Stack(Stack&& other) noexcept : mapping_(std::exchange(other.mapping_, nullptr)) {}

std::byte* Stack::begin() const {
  return mapping_ + page_bytes();
}
std::size_t Stack::size() {
  return kStackBytes;
}

void switch_places(Place& from, Place& to) {
  from.sanitizer.leaving_for(to.sanitizer, false);
  swapcontext(&from.registers, &to.registers);
  from.sanitizer.arrived();
}

Fiber::Fiber(std::function<void()> body) : body_(std::move(body)) {
  place_.sanitizer.created(stack_.begin(), Stack::size());
  getcontext(&place_.registers);
  place_.registers.uc_stack.ss_sp = stack_.begin();
  place_.registers.uc_stack.ss_size = Stack::size();
  place_.registers.uc_link = nullptr;
  // makecontext passes ints only, so the fiber's address travels in two.
  const auto self = reinterpret_cast<std::uintptr_t>(this);
  makecontext(&place_.registers,
              reinterpret_cast<void (*)()>(&Fiber::enter),
              2,
              static_cast<unsigned>(self >> 32),
              static_cast<unsigned>(self));
}

Fiber::~Fiber() {
  place_.sanitizer.destroyed();
}

void Fiber::enter(unsigned high, unsigned low) {
  auto* self = reinterpret_cast<Fiber*>((std::uintptr_t{high} << 32) | low);
  self->place_.sanitizer.arrived();
  self->body_();
  std::abort();  // a body leaves for ever instead of returning
}

void Fiber::leave_for_ever(Place& next) {
  place_.sanitizer.leaving_for(next.sanitizer, true);
  setcontext(&next.registers);
  std::abort();
}

}  // namespace megamoe::sim
