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

/// The result of one read of `gpu_metrics`: many values for one mailbox call to the firmware. Keeps the
/// bytes. One thread, allocates nothing.
class GpuMetricsBlob {
 public:
  /// Four times the largest known version, 1.8 with 3872 bytes.
  static constexpr std::size_t kMaxSize = 16384;

  /// Reads the file and dispatches on the header, which may differ if another driver was loaded.
  /// `unsupported` for an unknown version, `failed` for bytes that are not gpu_metrics.
  ReadStatus read(const sysfs::File& file) noexcept;

  /// The same for bytes from another source.
  ReadStatus parse(std::span<const char> bytes) noexcept;

  ReadStatus status() const noexcept { return status_; }

  /// True if the version has the field, or that element of it, in a known unit, regardless of its value.
  bool has(std::size_t field, std::size_t element = 0) const noexcept;

  /// The same, in any unit.
  bool holds(std::size_t field, std::size_t element = 0) const noexcept {
    return element < places()[field].count;
  }

  /// The value in base units (celsius, watts, ratio, hertz, volts, seconds, bytes, joules). The driver marks
  /// values that the chip lacks with all-ones, which is `unsupported`. Newer firmware uses 0 for temperatures
  /// and voltages, which is `unsupported` too. `instance`: the partition, for fields that each partition has.
  Sample value(std::size_t field, std::size_t element, std::size_t instance = 0) const noexcept;

  /// The first available element: in an array by die or engine, that of the first one.
  Sample value(std::size_t field) const noexcept;

  /// The sum of all available elements.
  Sample sum(std::size_t field) const noexcept;

  /// The highest of all available elements, in all partitions.
  Sample highest(std::size_t field) const noexcept;

  /// The highest element of one of `parts` partitions. If each partition has its own struct, it is read from
  /// there. Otherwise it is read from the partition's share of the one array, which holds their dies in
  /// order.
  Sample highest(std::size_t field, std::size_t part, std::size_t parts) const noexcept;

  /// Number of elements whose value is set as a bit in `mask`: 0b110 for 1 and 2.
  Sample count_of(std::size_t field, std::uint64_t mask) const noexcept;

  /// A field that is a set of flags.
  struct Flags {
    std::uint64_t bits = 0;
    ReadStatus status = ReadStatus::unsupported;

    /// 1 if any flag of `mask` is set, 0 otherwise.
    Sample any_of(std::uint64_t mask) const noexcept {
      if (status != ReadStatus::ok) return Sample::miss(status);
      return Sample::of((bits & mask) != 0 ? 1 : 0);
    }
  };
  Flags flags(std::size_t field) const noexcept;

  /// The raw element, in any unit; nullopt if it is all-ones or missing.
  std::optional<std::uint64_t> raw(std::size_t field, std::size_t element = 0) const noexcept;

  /// Width of an element in bits, at which a counter wraps.
  int bits(std::size_t field) const noexcept { return 8 * places()[field].width; }

 private:
  Sample highest_in(std::size_t field, std::size_t begin, std::size_t end,
                    std::size_t instance) const noexcept;
  ReadStatus accept(std::size_t size) noexcept;
  ReadStatus choose_places(std::size_t structure_size) noexcept;
  const BlobPlaces& places() const noexcept { return layout_ != nullptr ? layout_->places : own_places_; }
  std::uint64_t bits_of(const BlobPlace& place, std::size_t element, std::size_t instance) const noexcept;

  std::array<char, kMaxSize> bytes_{};
  static constexpr BlobLayout kNoFields{};
  const BlobLayout* layout_ = &kNoFields;  // null: own_places_, of a version that describes itself
  BlobPlaces own_places_{};
  ReadStatus status_ = ReadStatus::unsupported;
};

}  // namespace gpumeter::amd
