#pragma once

#include <string>

#include "base/options.hpp"

namespace gpumeter {

/// The roots of what is read and kept: `paths` in the configuration.
struct Paths {
  std::string sysfs = "/sys";
  std::string procfs = "/proc";
  std::string state = "/var/lib/gpumeter";
  std::string api = "/run/gpumeter/api.sock";  ///< the socket for the services; empty: none

  std::string cgroups() const { return sysfs + "/fs/cgroup"; }
  bool operator==(const Paths&) const = default;
};
extern const options::Section kPathSection;

}  // namespace gpumeter
