#pragma once

#include <cstdint>

/// The part of the kernel's interface to xe that is used here, which libdrm of Debian 12 lacks. Source:
/// kernel 7.2, include/uapi/drm/xe_drm.h (struct drm_xe_device_query, drm_xe_query_mem_regions,
/// drm_xe_mem_region).
namespace gpumeter::intel::memory {

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
