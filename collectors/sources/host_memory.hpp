#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "collectors/api/sample.hpp"
#include "collectors/sources/sysfs.hpp"

namespace gpumeter {

/// The host's memory in bytes, for devices without memory of their own.
struct HostMemory {
  double total = 0;      ///< MemTotal
  double available = 0;  ///< MemAvailable: what programs can still allocate without swapping

  bool operator==(const HostMemory&) const = default;
};

/// Parses /proc/meminfo (Documentation/filesystems/proc.rst). nullopt if one of the two lines is missing or
/// MemAvailable exceeds MemTotal. The unit of the file is KiB, although it is spelled "kB".
std::optional<HostMemory> parse_host_memory(std::string_view meminfo) noexcept;

/// The file, kept open. One thread; no read allocates.
class HostMemoryFile {
 public:
  HostMemoryFile() = default;
  explicit HostMemoryFile(const std::string& procfs_root) : file_(procfs_root + "/meminfo") {}

  ReadStatus status() const noexcept { return file_.status(); }

  /// On any other status than `ok`, `out` is unchanged.
  ReadStatus read(HostMemory& out) const noexcept;

 private:
  sysfs::File file_;
};

}  // namespace gpumeter
