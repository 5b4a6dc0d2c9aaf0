#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "programs/top/layout/printable.hpp"

namespace gpumeter::top {

/// One series of /api/v1/series.
struct Sample {
  std::string name;
  std::map<std::string, std::string, std::less<>> labels;
  double value = 0;
  double age_seconds = 0;

  /// Returns an empty text if the series has no such label.
  std::string_view label(std::string_view key) const noexcept {
    const auto found = labels.find(key);
    return found == labels.end() ? std::string_view() : std::string_view(found->second);
  }
};

/// A reason of a state, from /api/v1/health.
struct Finding {
  std::string reason;
  std::string severity;
  std::string action;
  std::string text;
  std::string alert;
  std::string runbook;
  std::optional<double> since_seconds;
};

/// The health of one GPU.
struct DeviceHealth {
  std::string gpu;
  std::string uuid;
  std::string model;
  std::string pci_address;
  std::string state;
  std::optional<double> since_seconds;
  std::vector<Finding> findings;
};

struct Health {
  std::vector<DeviceHealth> devices;
  std::vector<Finding> machine;
};

/// Parse the daemon's answers. All texts of the result are printable(). Series whose value is not a finite
/// number are omitted. Fields that are missing or have another type are empty. The Error states what is
/// wrong with the document.
Result<std::vector<Sample>> parse_series(std::string_view json, Charset charset);
Result<Health> parse_health(std::string_view json, Charset charset);

}  // namespace gpumeter::top
