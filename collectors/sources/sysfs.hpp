#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.hpp"
#include "collectors/api/sample.hpp"

/// Small files whose text the kernel generates at each read: sysfs, hwmon, and copies in tests. Every read
/// may block in the driver behind the file.
namespace gpumeter::sysfs {

/// Number of bytes read and the outcome of the read.
struct Bytes {
  std::size_t size;
  ReadStatus status;
};

/// A file kept open. Each read is one pread, for which the kernel calls the driver again; it does no path
/// lookup and allocates nothing. One thread.
class File {
 public:
  File() = default;
  /// Opens read-only, which does not wake a device. status() is the outcome.
  explicit File(const std::string& path) noexcept;

  ReadStatus status() const noexcept { return status_; }

  /// Opens the file again if it could not be opened, because a driver that resets its card refuses opens for
  /// a while. Does nothing if the file is open or did not exist.
  void retry() noexcept;

  /// Reads at most `buffer.size()` bytes from `offset` on; a read may return fewer than the file has.
  Bytes read(std::span<char> buffer, std::size_t offset = 0) const noexcept;

  /// Reads the file's one integer (see parse_integer). An empty file is `unsupported`: drivers leave it empty
  /// if the hardware has no value. Any other text is `failed`.
  Sample read_integer() const noexcept;

 private:
  Descriptor descriptor_;
  ReadStatus status_ = ReadStatus::unsupported;
  std::string path_;  // of a file that exists but could not be opened
};

/// `ok` if the file is not empty, or if the folder has an entry. Allocates.
ReadStatus probe(const std::string& path);

/// ENODEV and ENOENT: gone; EACCES and EPERM: denied; ETIMEDOUT and ETIME: timeout; EOPNOTSUPP, ENODATA,
/// ENOSYS and EINVAL (amdgpu and radeon, for a sensor that the chip lacks): unsupported; any other: failed.
ReadStatus status_of(int error_number) noexcept;

/// Parses a decimal number, or a hexadecimal one after "0x". Blanks and newlines may surround it, and NULs
/// may follow it: some drivers and copies pad a text to a page of NULs.
std::optional<std::int64_t> parse_integer(std::string_view text) noexcept;

/// The text before the first NUL, without the blanks and newlines around it.
std::string_view trimmed(std::string_view text) noexcept;

// For discovery: these take paths and allocate.

/// The trimmed text of a file, at most one page (sysfs' limit); empty if it cannot be read.
std::string read_text(const std::string& path);

/// The same as an integer.
std::optional<std::int64_t> read_integer(const std::string& path);

/// Last component of a link's target ("amdgpu" for `driver`); empty if it is not a link.
std::string link_name(const std::string& path);

/// The names in a folder, sorted with numbers compared as numbers (hwmon2 before hwmon10); none if the folder
/// cannot be read.
std::vector<std::string> list(const std::string& folder);

}  // namespace gpumeter::sysfs
