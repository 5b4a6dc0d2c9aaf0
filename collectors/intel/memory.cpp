#include "collectors/intel/memory.hpp"

#include <fcntl.h>
#include <i915_drm.h>
#include <linux/capability.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <xf86drm.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/descriptor.hpp"
#include "collectors/sources/sysfs.hpp"

namespace gpumeter::intel::memory {
namespace {

constexpr std::size_t kMostBytes = 16384;  // 185 regions of xe; a card has one of the host and one per tile
constexpr unsigned long kXeQueryRequest = DRM_IOWR(DRM_COMMAND_BASE + kXeDeviceQuery, XeDeviceQuery);

/// A region of the card's own memory, as either driver reports it, or the sum of several.
struct Region {
  std::uint64_t size = 0, used = 0, visible_size = 0, visible_used = 0;
};

Regions told(const Region& sum, bool may_see_use) noexcept {
  Regions total;
  if (sum.size == 0) return total;
  total.status = ReadStatus::ok;
  total.size = static_cast<double>(sum.size);
  if (sum.used > 0 || may_see_use) total.used = static_cast<double>(sum.used);
  if (sum.visible_size == 0) return total;
  total.visible_size = static_cast<double>(sum.visible_size);
  if (sum.visible_used > 0 || may_see_use) total.visible_used = static_cast<double>(sum.visible_used);
  return total;
}

/// Copies a T from the bytes at `offset`; false if they end before.
template <class T>
bool copy_at(std::span<const std::byte> bytes, std::size_t offset, T& value) noexcept {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return false;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return true;
}

/// Sums `count` entries of the answer behind its header; fails if the answer ends before.
template <class Entry, class Convert>
Regions sum_of(std::span<const std::byte> answer, std::size_t header, std::uint32_t count, bool may_see_use,
               Convert own_region) noexcept {
  Region sum;
  for (std::uint32_t i = 0; i < count; ++i) {
    Entry entry{};
    if (!copy_at(answer, header + i * sizeof(Entry), entry)) return {.status = ReadStatus::failed};
    const Region region = own_region(entry).value_or(Region{});
    sum = {sum.size + region.size, sum.used + region.used, sum.visible_size + region.visible_size,
           sum.visible_used + region.visible_used};
  }
  return told(sum, may_see_use);
}

std::uint64_t difference(std::uint64_t whole, std::uint64_t part) noexcept {
  return whole >= part ? whole - part : 0;
}

ReadStatus call_status(int result) noexcept { return result == 0 ? ReadStatus::ok : sysfs::status_of(errno); }

ReadStatus ask_i915(int file, const Ioctl& call, std::span<std::byte> buffer, std::size_t& size) {
  drm_i915_query_item item{};
  item.query_id = DRM_I915_QUERY_MEMORY_REGIONS;
  drm_i915_query request{};
  request.num_items = 1;
  request.items_ptr = reinterpret_cast<std::uintptr_t>(&item);
  ReadStatus status = call_status(call(file, DRM_IOCTL_I915_QUERY, &request));
  if (status != ReadStatus::ok) return status;
  if (item.length < 0) return sysfs::status_of(-item.length);  // the item's own error
  size = static_cast<std::size_t>(item.length);
  if (size == 0 || size > buffer.size()) return ReadStatus::failed;
  item.data_ptr = reinterpret_cast<std::uintptr_t>(buffer.data());
  status = call_status(call(file, DRM_IOCTL_I915_QUERY, &request));
  if (status == ReadStatus::ok && item.length < 0) status = sysfs::status_of(-item.length);
  return status;
}

ReadStatus ask_xe(int file, const Ioctl& call, std::span<std::byte> buffer, std::size_t& size) {
  XeDeviceQuery request{};
  request.query = kXeQueryMemoryRegions;
  const ReadStatus status = call_status(call(file, kXeQueryRequest, &request));
  if (status != ReadStatus::ok) return status;
  size = request.size;
  if (size == 0 || size > buffer.size()) return ReadStatus::failed;
  request.data = reinterpret_cast<std::uintptr_t>(buffer.data());
  return call_status(call(file, kXeQueryRequest, &request));
}

}  // namespace

Regions decode_i915(std::span<const std::byte> answer, bool may_see_use) noexcept {
  drm_i915_query_memory_regions header;  // not {}: clang rejects it for the array without a size at its end
  if (!copy_at(answer, 0, header)) return {.status = ReadStatus::failed};
  using Info = drm_i915_memory_region_info;
  return sum_of<Info>(
      answer, sizeof(header), header.num_regions, may_see_use, [](const Info& info) -> std::optional<Region> {
        if (info.region.memory_class != I915_MEMORY_CLASS_DEVICE) return std::nullopt;
        return Region{info.probed_size, difference(info.probed_size, info.unallocated_size),
                      info.probed_cpu_visible_size,
                      difference(info.probed_cpu_visible_size, info.unallocated_cpu_visible_size)};
      });
}

Regions decode_xe(std::span<const std::byte> answer, bool may_see_use) noexcept {
  XeMemoryRegions header{};
  if (!copy_at(answer, 0, header)) return {.status = ReadStatus::failed};
  return sum_of<XeMemoryRegion>(
      answer, sizeof(header), header.count, may_see_use,
      [](const XeMemoryRegion& region) -> std::optional<Region> {
        if (region.memory_class != kXeVram) return std::nullopt;
        return Region{region.total_size, region.used, region.cpu_visible_size, region.cpu_visible_used};
      });
}

Regions query(int file, std::string_view driver, bool may_see_use, const Ioctl& call) noexcept {
  alignas(std::uint64_t) std::array<std::byte, kMostBytes> buffer{};
  std::size_t size = 0;
  const bool is_xe = driver == "xe";
  const ReadStatus status = is_xe ? ask_xe(file, call, buffer, size) : ask_i915(file, call, buffer, size);
  if (status != ReadStatus::ok) return {.status = status};
  const std::span<const std::byte> answer = std::span(buffer).first(size);
  return is_xe ? decode_xe(answer, may_see_use) : decode_i915(answer, may_see_use);
}

Regions query_node(const std::string& node, std::string_view driver, bool may_see_use) noexcept {
  const Descriptor file(::open(node.c_str(), O_RDWR | O_CLOEXEC));
  if (!file) return {.status = sysfs::status_of(errno)};
  return query(file.number(), driver, may_see_use, [](int number, unsigned long request, void* argument) {
    return drmIoctl(number, request, argument);
  });
}

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
