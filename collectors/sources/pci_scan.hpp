#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/bounded_calls.hpp"
#include "collectors/sources/pci.hpp"

namespace gpumeter::pci {

/// Finds every display adapter (see is_display) of the machine, with or without a driver. The scan limits the
/// time of each function of the bus: if the files of one hang, it still finds the others. One thread.
class Scan {
 public:
  /// Reads a function from its folder; may hang.
  using Read = std::function<std::optional<Function>(const std::string& folder)>;

  /// `thread`: name of the threads that read. `hanging`: see BoundedCalls.
  Scan(const std::string& thread, const Clock& clock, Read read = read_function,
       std::shared_ptr<HangingCalls> hanging = nullptr)
      : calls_(thread, kAtMost, clock, std::move(hanging), "pci"), read_(std::move(read)) {}

  struct Found {
    std::vector<Function> adapters;   ///< in order of address
    std::vector<std::string> silent;  ///< addresses of functions that could not be identified
    bool is_whole = true;             ///< false: the kernel refused to create a thread, so some were not read
  };
  /// `sysfs_root`: "/sys".
  Found adapters(const std::string& sysfs_root);

  static constexpr Nanoseconds kAtMost = std::chrono::milliseconds(500);  ///< for one function

 private:
  BoundedCalls calls_;
  const Read read_;
};

}  // namespace gpumeter::pci
