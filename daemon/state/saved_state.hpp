#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/clock.hpp"
#include "base/result.hpp"

namespace gpumeter {

/// Figures that survive a restart, as one part of the daemon writes them (base/records.hpp), by the part's
/// name.
using StateSections = std::map<std::string, std::string>;

/// The contents of `figures.state` in the state folder.
///
///     gpumeter-state TAB 1 TAB machine-id TAB boot-id TAB Unix time in ns
///     section TAB name TAB number of its lines
///     ...
///     end TAB CRC-32 of all lines before this one, in hexadecimal digits
struct SavedState {
  std::string machine_id;  ///< machine-id(5); empty: the machine has none
  std::string boot_id;     ///< /proc/sys/kernel/random/boot_id; empty: unknown
  Nanoseconds saved_at{};  ///< CLOCK_REALTIME
  StateSections sections;
  /// Not in the file. True if the machine has not been booted since: the same processes may still run, the
  /// clocks continue, and so do the drivers' counters.
  bool is_of_this_boot = false;

  const std::string& section(const std::string& name) const;
};

/// CRC-32 in 8 hexadecimal digits.
std::string checksum_of(std::string_view text);

std::string encode(const SavedState& state);

/// Returns an Error for a text that is cut, changed or of another version; never a part of it.
Result<SavedState> decode(std::string_view text);

}  // namespace gpumeter
