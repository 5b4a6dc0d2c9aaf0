#pragma once

#include <cstddef>
#include <cstdint>
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

/// True if the process has CAP_PERFMON or CAP_SYS_ADMIN, by which the drivers tell how much memory is used
/// (perfmon_capable()).
bool may_see_use() noexcept;

// The part of the kernel's interface to xe that is used here, which libdrm of Debian 12 lacks. Source: kernel
// 7.2, include/uapi/drm/xe_drm.h (struct drm_xe_device_query, drm_xe_query_mem_regions, drm_xe_mem_region).

struct XeDeviceQuery {
  std::uint64_t extensions;
  std::uint32_t query;
  std::uint32_t size;  ///< 0: the kernel writes the size of the answer
  std::uint64_t data;
  std::uint64_t reserved[2];
};
static_assert(sizeof(XeDeviceQuery) == 40);

struct XeMemoryRegion {
  std::uint16_t memory_class;
  std::uint16_t instance;
  std::uint32_t min_page_size;
  std::uint64_t total_size;
  std::uint64_t used;
  std::uint64_t cpu_visible_size;
  std::uint64_t cpu_visible_used;
  std::uint64_t reserved[6];
};
static_assert(sizeof(XeMemoryRegion) == 88);

struct XeMemoryRegions {  ///< followed by the regions
  std::uint32_t count;
  std::uint32_t pad;
};

inline constexpr std::uint32_t kXeQueryMemoryRegions = 1;  // DRM_XE_DEVICE_QUERY_MEM_REGIONS
inline constexpr unsigned kXeDeviceQuery = 0x00;           // DRM_XE_DEVICE_QUERY
inline constexpr std::uint16_t kXeVram = 1;                // DRM_XE_MEM_REGION_CLASS_VRAM

}  // namespace gpumeter::intel::memory
