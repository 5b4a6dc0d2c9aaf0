#pragma once

#include <string>
#include <vector>

#include "collectors/api/device.hpp"
#include "collectors/api/sample.hpp"

namespace gpumeter {

/// One of the places that a device is read from, as a person who asks why a value is missing wants it.
struct SourceReport {
  std::string what;   ///< what it gives, in a word or two: "sensors"
  std::string where;  ///< a path, a library
  /// ok: it is read; unsupported: it is not there; denied: it may not be opened; all else as of a read.
  ReadStatus status;
  std::string
      remedy;  ///< what would make it readable, or why that is as it should be; empty where it is read
};

/// A collector that can say what it reads a device from. Beside Collector, for commands that print and end.
class ReportsSources {
 public:
  virtual ~ReportsSources() = default;
  /// Opens and closes; wakes nothing.
  virtual std::vector<SourceReport> sources_of(const DeviceInfo& info) const = 0;
};

}  // namespace gpumeter
