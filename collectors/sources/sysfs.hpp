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

/// Small files that a kernel makes up when they are read: sysfs, hwmon, and copies of them in tests. Every
/// read may block in the driver behind the file.
namespace gpumeter::sysfs {

/// How much of what the kernel gave, and how the read ended.
struct Bytes {
  std::size_t size;
  ReadStatus status;
};

/// A file kept open. Each read is one pread, usually at offset 0, upon which the kernel asks the driver anew;
/// nothing is looked up or allocated. One thread.
class File {
 public:
  File() = default;
  /// Opens read-only, which by itself wakes no device. status() says how that went.
  explicit File(const std::string& path) noexcept;

  ReadStatus status() const noexcept { return status_; }

  /// Opens the file again if it could not be opened: a driver that is resetting its card refuses for a while.
  /// Nothing is done for a file that is open, or was not there.
  void retry() noexcept;

  /// At most `buffer.size()` bytes from `offset` on; a file may give fewer than it has.
  Bytes read(std::span<char> buffer, std::size_t offset = 0) const noexcept;

  /// The file's one integer (see parse_integer). No text at all is `unsupported`: drivers leave a file empty
  /// where the hardware has nothing to say. Any other text is `failed`.
  Sample read_integer() const noexcept;

 private:
  Descriptor descriptor_;
  ReadStatus status_ = ReadStatus::unsupported;
  std::string path_;  // of a file that is there but could not be opened
};

/// How a file or a folder answers now: `ok` for a file with a text, and for a folder that is not empty.
/// Allocates.
ReadStatus probe(const std::string& path);

/// ENODEV and ENOENT: gone; EACCES and EPERM: denied; ETIMEDOUT: timeout; EOPNOTSUPP, ENODATA, EINVAL (what
/// amdgpu and radeon say of a sensor that the chip lacks): unsupported; all else: failed.
ReadStatus status_of(int error_number) noexcept;

/// Decimal, or hexadecimal after "0x". Blanks, newlines and NULs around it are allowed (some drivers and
/// copies pad a text to a page of NULs), anything else is not.
std::optional<std::int64_t> parse_integer(std::string_view text) noexcept;

/// What is before the first NUL, without the blanks and newlines at its ends.
std::string_view trimmed(std::string_view text) noexcept;

// For discovery: by path, allocating.

/// The trimmed text of a file; empty if it has none or cannot be read. At most a page, as sysfs gives.
std::string read_text(const std::string& path);

/// The same as an integer.
std::optional<std::int64_t> read_integer(const std::string& path);

/// Last component of what a link points to ("amdgpu" of `driver`); empty if it is no link.
std::string link_name(const std::string& path);

/// Names in a folder, in order, with numbers in them compared as numbers (hwmon2 before hwmon10); none if
/// it cannot be read.
std::vector<std::string> list(const std::string& folder);

}  // namespace gpumeter::sysfs
