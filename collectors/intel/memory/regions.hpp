#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "collectors/api/sample.hpp"

/// A card's own memory, which only ioctls of its drivers report.
namespace gpumeter::intel::memory {

/// The sum over the card's own regions, in bytes. nullopt: the driver does not report it.
struct Regions {
  std::optional<double> size;
  std::optional<double> used;
  std::optional<double> visible_size;  ///< the part that the processor can access
  std::optional<double> visible_used;
  ReadStatus status = ReadStatus::unsupported;
};

/// Decode the answers of DRM_I915_QUERY_MEMORY_REGIONS and DRM_XE_DEVICE_QUERY_MEM_REGIONS; they accept any
/// bytes. Without CAP_PERFMON both drivers report that nothing is used. `may_see_use`: false makes such a 0
/// unknown. Graphics in the processor have regions of system memory only: `unsupported`.
Regions decode_i915(std::span<const std::byte> answer, bool may_see_use) noexcept;
Regions decode_xe(std::span<const std::byte> answer, bool may_see_use) noexcept;

/// ioctl(2): 0, or -1 with errno.
using Ioctl = std::function<int(int file, unsigned long request, void* argument)>;

/// Asks the driver (`i915` or `xe`) behind an open node. Each query is two ioctls: one for the size of the
/// answer, one for the answer. Lane thread; may block in the driver.
Regions query(int file, std::string_view driver, bool may_see_use, const Ioctl& call) noexcept;

/// Opens the node, asks, and closes it. Opening a node wakes the card.
Regions query_node(const std::string& node, std::string_view driver, bool may_see_use) noexcept;

}  // namespace gpumeter::intel::memory
