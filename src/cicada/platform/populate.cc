#include "cicada/platform/populate.h"

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace cicada::platform {
namespace {

constexpr int kPopulateWrite = 23;  // MADV_POPULATE_WRITE, which older headers lack

}  // namespace

bool populate(std::byte* data, std::size_t size) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const std::uintptr_t before = (page - reinterpret_cast<std::uintptr_t>(data) % page) % page;
  if (before >= size) return true;
  const std::uintptr_t whole = (size - before) / page * page;
  return whole == 0 || ::madvise(data + before, whole, kPopulateWrite) == 0;
}

void run_when_idle() {
  const sched_param parameters{};
  (void)::sched_setscheduler(0, SCHED_IDLE, &parameters);
}

}  // namespace cicada::platform
