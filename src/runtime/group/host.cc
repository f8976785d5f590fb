#include "runtime/group/host.hpp"

#include <unistd.h>

#include <fstream>

#include "megamoe/version.hpp"

namespace megamoe {
namespace {

std::string host_name() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

std::string boot_id() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id = "unknown";
  file >> id;
  return id;
}

}  // namespace

Configuration host_configuration(int ranks) {
  Configuration c;
  c.add("version", std::string(kVersion));
  c.add("ranks", ranks);
  c.add("host name (all ranks must be on one host)", host_name());
  c.add("boot id (all ranks must be on one host)", boot_id());
  return c;
}

}  // namespace megamoe
