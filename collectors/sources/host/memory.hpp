#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "collectors/sources/sysfs.hpp"

namespace gpumeter {

/// The host's memory in bytes.
struct HostMemory {
  double total = 0;
  double available = 0;  ///< what new programs can allocate without swapping, by the kernel's estimate
};

/// Parses the text of /proc/meminfo, or its beginning: the lines MemTotal and MemAvailable (Linux 3.14,
/// Documentation/filesystems/proc.rst), in kB of 1024 bytes. nullopt if one is missing or no number, or if
/// more is available than there is. Any bytes.
std::optional<HostMemory> parse_meminfo(std::string_view text) noexcept;

/// /proc/meminfo, kept open. One thread.
class HostMemoryFile {
 public:
  HostMemoryFile() = default;
  /// `procfs`: "/proc", or a copy of it in tests.
  explicit HostMemoryFile(const std::string& procfs) : file_(procfs + "/meminfo") {}

  struct Reading {
    HostMemory memory;
    ReadStatus status;
  };
  /// Reads the file; allocates nothing. `failed` if its text is not as described above.
  Reading read() const noexcept;

 private:
  sysfs::File file_;
};

}  // namespace gpumeter
