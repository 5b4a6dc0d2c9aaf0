#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>

#include "collectors/api/drm_use.hpp"
#include "collectors/sources/fdinfo/client.hpp"

namespace gpumeter::fdinfo {

/// Busy time by class, from additions by kind of engine. Kinds of one class work at the same time, so a scan
/// adds only the busiest of them to the class.
class EngineSums {
 public:
  /// Adds seconds of the scan under way; also of 0, for a client that reports the engine.
  void add(std::size_t name, double seconds) noexcept { added_[name] = added_[name].value_or(0) + seconds; }

  /// Ends the scan.
  void settle() noexcept {
    EngineSeconds classes;
    for (std::size_t i = 0; i < kEngineNameCount; ++i) {
      if (!added_[i]) continue;
      std::optional<double>& most = classes[static_cast<std::size_t>(kEngineNames[i].engine)];
      most = std::max(most.value_or(0), *added_[i]);
    }
    for (std::size_t i = 0; i < kEngineClassCount; ++i) {
      if (classes[i]) seconds_[i] = seconds_[i].value_or(0) + *classes[i];
    }
    added_ = {};
  }

  /// Of the scans that have ended; never falls.
  const EngineSeconds& seconds() const noexcept { return seconds_; }

 private:
  std::array<std::optional<double>, kEngineNameCount> added_{};
  EngineSeconds seconds_{};
};

}  // namespace gpumeter::fdinfo
