#pragma once

#include <string>
#include <vector>

#include "collectors/support/bounded_calls.hpp"
#include "collectors/support/pci.hpp"

namespace gpumeter::pci {

/// Looks for display adapters as display_adapters() does, but gives each function of the bus a time to
/// answer: a function whose files hang costs nobody else anything. One thread.
class Scan {
 public:
  /// `thread`: name of the threads that read.
  Scan(const std::string& thread, const Clock& clock) : calls_(thread, kAtMost, clock) {}

  struct Found {
    std::vector<Function> adapters;   ///< in order of address
    std::vector<std::string> silent;  ///< addresses of functions that did not say what they are
  };
  Found adapters(const std::string& sysfs_root);

  static constexpr Nanoseconds kAtMost = std::chrono::milliseconds(500);  ///< for one function

 private:
  BoundedCalls calls_;
};

}  // namespace gpumeter::pci
