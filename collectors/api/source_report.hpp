#pragma once

#include <string>
#include <vector>

#include "collectors/api/device.hpp"
#include "collectors/api/sample.hpp"

namespace gpumeter {

/// One of the sources of a device, reported to a person who looks for a missing value.
struct SourceReport {
  std::string what;   ///< the kind of data, in a word or two: "sensors"
  std::string where;  ///< a path or a library
  /// ok: readable; unsupported: absent; denied: no permission to open it; otherwise as for a read.
  ReadStatus status;
  std::string remedy;  ///< how to make it readable, or why its state is expected; empty if it is readable
};

/// A collector that can report its sources for a device; implemented in addition to Collector. For commands
/// that print and end.
class ReportsSources {
 public:
  virtual ~ReportsSources() = default;
  /// Opens and closes the sources; wakes no device.
  virtual std::vector<SourceReport> sources_of(const DeviceInfo& info) const = 0;
};

}  // namespace gpumeter
