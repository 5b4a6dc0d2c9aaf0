#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "collectors/amd/gpu_metrics_layout.hpp"
#include "collectors/api/sample.hpp"
#include "collectors/support/sysfs.hpp"

namespace gpumeter::amd {

/// What one read of `gpu_metrics` gave: one mailbox call to the firmware, many values. Keeps its bytes. One
/// thread, allocates nothing.
class GpuMetricsBlob {
 public:
  /// sysfs hands out a page at the most, and all layouts fit into one.
  static constexpr std::size_t kMaxSize = 4096;

  /// Reads anew and dispatches on the header, which a driver loaded meanwhile may have changed. `unsupported`
  /// for a version without a table, `failed` for bytes that are no gpu_metrics.
  ReadStatus read(const sysfs::File& file) noexcept;

  /// The same for bytes from elsewhere.
  ReadStatus parse(std::span<const char> bytes) noexcept;

  ReadStatus status() const noexcept { return status_; }

  /// True if the version has the field, whatever its value.
  bool has(std::size_t field) const noexcept;

  /// The value in base units (celsius, watts, ratio, hertz, volts, seconds). All-ones, with which the driver
  /// fills what the chip lacks, is `unsupported`, and so is a temperature or voltage of 0, with which newer
  /// firmware does the same.
  Sample value(std::size_t field, std::size_t element = 0) const noexcept;

  /// Of a field that is a set of flags: 1 if any flag of `mask` is set, else 0.
  Sample any_of(std::size_t field, std::uint64_t mask) const noexcept;

 private:
  ReadStatus accept(std::size_t size) noexcept;
  std::uint64_t raw(const BlobPlace& place, std::size_t element) const noexcept;

  std::array<char, kMaxSize> bytes_{};
  const BlobLayout* layout_ = nullptr;
  ReadStatus status_ = ReadStatus::unsupported;
};

}  // namespace gpumeter::amd
