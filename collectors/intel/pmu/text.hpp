#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

/// The texts of a PMU's folder below /sys/bus/event_source/devices
/// (Documentation/ABI/testing/sysfs-bus-event_source-devices-format and -events). Pure functions; they accept
/// any text.
namespace gpumeter::intel::pmu {

/// The bits of one term of an event, from a file of `format`: "config:0-11", "config:0-7,32-35". Only the
/// word `config` is known; i915 and xe use no other.
struct Field {
  struct Bits {
    unsigned first = 0, last = 0;
  };
  static constexpr std::size_t kMost = 4;
  std::array<Bits, kMost> ranges{};
  std::size_t count = 0;

  /// The value, spread over the bits; nullopt if it does not fit.
  std::optional<std::uint64_t> place(std::uint64_t value) const noexcept;
};
std::optional<Field> parse_field(std::string_view text) noexcept;

/// The value of one term of a file of `events`: 2 for "event=0x02", "event". nullopt: no such term.
std::optional<std::uint64_t> term_of(std::string_view text, std::string_view term) noexcept;

/// The first processor of a `cpumask`: 4 for "4-7,12". nullopt: the text is no list of processors.
std::optional<int> first_cpu(std::string_view text) noexcept;

/// An engine of an event's name: "vcs1-busy" of i915.
struct EngineName {
  std::string_view engine_class;  ///< rcs, bcs, vcs, vecs, ccs
  unsigned instance = 0;
};
std::optional<EngineName> parse_busy_event(std::string_view name) noexcept;

}  // namespace gpumeter::intel::pmu
