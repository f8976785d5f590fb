#include "runtime/memory/segment.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "runtime/system_error.hpp"

namespace megamoe {
namespace {

[[noreturn]] void refuse_memory(std::uint64_t bytes, int error_number) {
  throw_system_error(sentence("a rank's symmetric memory needs ",
                              bytes,
                              " bytes, which the system "
                              "does not give"),
                     error_number);
}

std::shared_ptr<void> map(std::uint64_t bytes, int flags, int descriptor) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, descriptor, 0);
  if (memory == MAP_FAILED) refuse_memory(bytes, errno);
  return {memory, [bytes](void* mapped) { munmap(mapped, bytes); }};
}

}  // namespace

std::shared_ptr<Segment> Segment::anonymous(std::uint64_t bytes) {
  const auto memory = map(bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1);
  return held(memory, memory.get(), bytes);
}

std::shared_ptr<Segment> Segment::shareable(std::uint64_t bytes) {
  FileHandle file(memfd_create("megamoe", MFD_CLOEXEC));
  if (!file.is_open()) throw_system_error("memfd_create", errno);
  int error = 0;
  do {
    error = posix_fallocate(file.get(), 0, static_cast<off_t>(bytes));
  } while (error == EINTR);
  if (error != 0) refuse_memory(bytes, error);
  const auto memory = map(bytes, MAP_SHARED, file.get());
  return std::shared_ptr<Segment>(new Segment(memory, memory.get(), bytes, std::move(file)));
}

std::shared_ptr<Segment> Segment::received(FileHandle file, std::uint64_t bytes) {
  struct stat status {};
  if (fstat(file.get(), &status) != 0) throw_system_error("fstat of a peer's memory", errno);
  require(static_cast<std::uint64_t>(status.st_size) == bytes,
          ErrorCode::kInternal,
          "a peer's symmetric memory has ",
          status.st_size,
          " bytes; this rank expected ",
          bytes);
  const auto memory = map(bytes, MAP_SHARED, file.get());
  return held(memory, memory.get(), bytes);
}

std::shared_ptr<Segment> Segment::adopted(void* base, std::uint64_t bytes) {
  return held(nullptr, base, bytes);
}

std::shared_ptr<Segment> Segment::held(std::shared_ptr<void> owner,
                                       void* base,
                                       std::uint64_t bytes) {
  return std::shared_ptr<Segment>(new Segment(std::move(owner), base, bytes, FileHandle()));
}

}  // namespace megamoe
