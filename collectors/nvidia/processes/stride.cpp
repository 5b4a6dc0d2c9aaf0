#include "collectors/nvidia/processes/stride.hpp"

#include <algorithm>
#include <cstring>

#include "base/text.hpp"
#include "collectors/nvidia/nvml/abi.hpp"
#include "collectors/nvidia/nvml/constants.hpp"

namespace gpumeter::nvidia {
namespace {

constexpr unsigned kFirstBranch = 535;  // of header 12.2
constexpr unsigned kLastBranch = 545;   // of header 12.3

constexpr unsigned kMostPid = 4'194'304;  // PID_MAX_LIMIT (Linux, include/linux/threads.h)
constexpr unsigned kMostInstance = 64;    // ids of MIG instances are below 16 on what there is

bool is_instance(unsigned id) noexcept { return id == nvml::kNoInstance || id < kMostInstance; }

bool is_plausible(std::span<const std::byte> list, std::size_t count, std::size_t stride) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    nvml::ProcessInfo entry;
    std::memcpy(&entry, list.data() + i * stride, sizeof entry);
    const bool is_process = entry.pid > 0 && entry.pid <= kMostPid;
    if (!is_process || !is_instance(entry.gpu_instance) || !is_instance(entry.compute_instance)) return false;
  }
  return true;
}

}  // namespace

bool may_be_wide(std::string_view driver_version) noexcept {
  const unsigned branch = take_number<unsigned>(driver_version).value_or(0);
  return branch >= kFirstBranch && branch <= kLastBranch;
}

// One entry reads the same either way. Of more the longer ones end behind the shorter ones, where nothing
// else writes; that alone decides it unless a library scribbles there.
std::size_t stride_of(std::span<const std::byte> list, std::size_t count) noexcept {
  constexpr std::size_t kShort = sizeof(nvml::ProcessInfo);
  constexpr std::size_t kWide = sizeof(nvml::WideProcessInfo);
  const std::span<const std::byte> behind = list.subspan(count * kShort, count * (kWide - kShort));
  const auto is_untouched = [](std::byte byte) { return byte == kUntouched; };
  if (count < 2 || std::all_of(behind.begin(), behind.end(), is_untouched)) return kShort;
  if (is_plausible(list, count, kShort)) return kShort;
  return is_plausible(list, count, kWide) ? kWide : 0;
}

}  // namespace gpumeter::nvidia
