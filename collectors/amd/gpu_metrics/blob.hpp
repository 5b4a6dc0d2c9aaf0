#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "collectors/amd/gpu_metrics/layout.hpp"
#include "collectors/api/sample.hpp"
#include "collectors/sources/sysfs.hpp"

namespace gpumeter::amd {

/// What one read of `gpu_metrics` gave: one mailbox call to the firmware, many values. Keeps its bytes. One
/// thread, allocates nothing.
class GpuMetricsBlob {
 public:
  /// Four times the largest that is known, 1.8 with 3872 bytes.
  static constexpr std::size_t kMaxSize = 16384;

  /// Reads the file and dispatches on the header, which a driver loaded meanwhile may have changed.
  /// `unsupported` for a version that is not known, `failed` for bytes that are no gpu_metrics.
  ReadStatus read(const sysfs::File& file) noexcept;

  /// The same for bytes from elsewhere.
  ReadStatus parse(std::span<const char> bytes) noexcept;

  ReadStatus status() const noexcept { return status_; }

  /// True if the version has the field, or that element of it, in a known unit, whatever its value.
  bool has(std::size_t field, std::size_t element = 0) const noexcept;

  /// The same in whatever unit.
  bool holds(std::size_t field, std::size_t element = 0) const noexcept {
    return element < places()[field].count;
  }

  /// The value in base units (celsius, watts, ratio, hertz, volts, seconds, bytes, joules). All-ones, with
  /// which the driver fills what the chip lacks, is `unsupported`, and so is a temperature or voltage of 0,
  /// with which newer firmware does the same. `instance`: of the partition, for what each of them has.
  Sample value(std::size_t field, std::size_t element, std::size_t instance = 0) const noexcept;

  /// The first element that is there: of an array with one element for each die or engine, the first one's.
  Sample value(std::size_t field) const noexcept;

  /// All elements that are there, added up.
  Sample sum(std::size_t field) const noexcept;

  /// The highest of all elements that are there, in all partitions.
  Sample highest(std::size_t field) const noexcept;

  /// The highest of one of `parts` partitions: in the struct of its own where each has one, else in its share
  /// of the one array, which holds their dies in order.
  Sample highest(std::size_t field, std::size_t part, std::size_t parts) const noexcept;

  /// How many elements are one of the numbers whose bits `mask` has: 0b110 for 1 and 2.
  Sample count_of(std::size_t field, std::uint64_t mask) const noexcept;

  /// Of a field that is a set of flags: 1 if any flag of `mask` is set, else 0.
  Sample any_of(std::size_t field, std::uint64_t mask) const noexcept;

  /// An element as it stands there, in whatever unit; nullopt where it is all-ones or not there.
  std::optional<std::uint64_t> raw(std::size_t field, std::size_t element = 0) const noexcept;

  /// Bits of an element, at which a counter wraps.
  int bits(std::size_t field) const noexcept { return 8 * places()[field].width; }

 private:
  Sample highest_in(std::size_t field, std::size_t begin, std::size_t end,
                    std::size_t instance) const noexcept;
  ReadStatus accept(std::size_t size) noexcept;
  ReadStatus choose_places(std::size_t structure_size) noexcept;
  const BlobPlaces& places() const noexcept { return layout_ != nullptr ? layout_->places : own_places_; }
  std::uint64_t bits_of(const BlobPlace& place, std::size_t element, std::size_t instance) const noexcept;

  std::array<char, kMaxSize> bytes_{};
  const BlobLayout* layout_ = nullptr;  // null: own_places_, of a version that describes itself, or empty
  BlobPlaces own_places_{};
  ReadStatus status_ = ReadStatus::unsupported;
};

}  // namespace gpumeter::amd
