#include "collectors/nvidia/nvml/by_driver.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/text.hpp"
#include "collectors/nvidia/nvml/abi.hpp"
#include "collectors/nvidia/nvml/constants.hpp"

namespace gpumeter::nvidia {
namespace {

using Version = std::pair<unsigned, unsigned>;

// nvml.h 12.9 and 13.0.39 have the earlier ids, 12.8 has neither, and 13.0.87 and later have the new ones.
// nvidia-ml-py 12.575.51 and 13.580.65 have the earlier ids, and 13.580.82 has the new ones.
constexpr Version kFirstEarlier = {575, 0};
constexpr Version kLastEarlier = {580, 65};
constexpr Version kFirstNew = {580, 82};
constexpr unsigned kFirstMoved = 269;
constexpr unsigned kLastMoved = 273;
constexpr unsigned kMovedBy = 18;

/// "580.95.05" is {580, 95}.
Version version_of(std::string_view text) noexcept {
  const auto first = take_number<unsigned>(text);
  text.remove_prefix(std::min<std::size_t>(1, text.size()));
  const auto second = take_number<unsigned>(text);
  return {first.value_or(0), second.value_or(0)};
}

constexpr unsigned kFirstBranch = 535;  // of header 12.2
constexpr unsigned kLastBranch = 545;   // of header 12.3

constexpr unsigned kMostPid = 4'194'304;  // PID_MAX_LIMIT (Linux, include/linux/threads.h)
constexpr unsigned kMostInstance = 64;    // ids of MIG instances are below 16 on known devices

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

unsigned throttle_field(unsigned field, std::string_view driver_version) noexcept {
  const Version version = version_of(driver_version);
  if (field < kFirstMoved || field > kLastMoved || version < kFirstEarlier || version >= kFirstNew)
    return field;
  return version <= kLastEarlier ? field - kMovedBy : 0;
}

bool may_be_wide(std::string_view driver_version) noexcept {
  const unsigned branch = take_number<unsigned>(driver_version).value_or(0);
  return branch >= kFirstBranch && branch <= kLastBranch;
}

// A single entry reads the same in both layouts. With several entries, the wide ones end behind the short
// ones, in bytes that nothing else writes. Those bytes decide the layout, unless a library overwrites them.
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
