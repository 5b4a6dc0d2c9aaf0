#pragma once

#include <optional>
#include <string>
#include <string_view>

/// Pressure stall information of the host (Documentation/accounting/psi.rst).
namespace gpumeter {

/// Time in which tasks waited for a resource, in seconds since the machine's start.
struct Pressure {
  std::optional<double> some;  ///< at least one task waited
  std::optional<double> full;  ///< all tasks that were not idle waited at once

  bool operator==(const Pressure&) const = default;
};

/// Parses the text of /proc/pressure/{memory,io}: "some avg10=0.00 ... total=MICROSECONDS" and the same for
/// `full`. Any bytes, any thread.
Pressure parse_pressure(std::string_view text) noexcept;

/// `resource`: "memory" or "io". Both values are absent if the kernel has no PSI (CONFIG_PSI, psi=0).
Pressure read_pressure(const std::string& procfs_root, const std::string& resource);

}  // namespace gpumeter
