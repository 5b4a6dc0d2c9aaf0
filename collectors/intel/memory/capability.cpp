#include "collectors/intel/memory/capability.hpp"

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdint>

namespace gpumeter::intel::memory {

bool may_see_use() noexcept {
  constexpr unsigned kPerfmon = 38;  // CAP_PERFMON, kernel 5.8
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> data{};
  if (::syscall(SYS_capget, &header, data.data()) != 0) return false;
  const std::uint64_t effective = data[0].effective | std::uint64_t{data[1].effective} << 32;
  const std::uint64_t wanted = std::uint64_t{1} << kPerfmon | std::uint64_t{1} << CAP_SYS_ADMIN;
  return (effective & wanted) != 0;
}

}  // namespace gpumeter::intel::memory
