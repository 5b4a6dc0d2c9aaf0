#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "base/result.hpp"

namespace gpumeter::kernel {

/// One record of /dev/kmsg (Documentation/ABI/testing/dev-kmsg):
/// "PRIORITY,SEQUENCE,MICROSECONDS,FLAGS[,..];TEXT\n" and lines " KEY=VALUE\n".
struct KernelRecord {
  unsigned facility = 0;  ///< 0: the kernel. Any other: user space wrote the record, so it proves nothing
  std::uint64_t sequence = 0;
  Nanoseconds since_boot{};      ///< by the kernel's local_clock(): stops during suspend, drifts
  std::string text = {};         ///< any bytes; a record of several lines has line ends
  std::string pci_address = {};  ///< of DEVICE=+pci:...; empty: the record names none

  bool is_of_kernel() const noexcept { return facility == 0; }
};

/// Parses one record. Returns nullopt for anything else. Any bytes, any thread.
std::optional<KernelRecord> parse_record(std::string_view record);

/// Reads the kernel's log from the first record that the kernel still has. One thread; no call blocks.
class KernelLog {
 public:
  /// `path`: /dev/kmsg, or a file or a pipe with such records. The Error's text begins with the path.
  static Result<KernelLog> open(const std::string& path);

  /// The next record; nullopt: none is left now.
  std::optional<KernelRecord> next();

  /// Records between this one and the first that is read were lost too.
  void expect_after(std::uint64_t sequence) noexcept { expected_ = sequence + 1; }
  /// Records that the kernel overwrote before they were read, by their sequence numbers.
  std::uint64_t lost() const noexcept { return lost_; }

 private:
  explicit KernelLog(Descriptor file) : file_(std::move(file)) {}
  std::optional<KernelRecord> take_buffered();

  Descriptor file_;
  std::string buffer_;
  std::optional<std::uint64_t> expected_;
  std::uint64_t lost_ = 0;
};

}  // namespace gpumeter::kernel
