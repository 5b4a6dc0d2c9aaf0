#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/sources/hwmon.hpp"

namespace gpumeter::intel {

/// Resolves the file names of the table to paths of one attached card:
///
///   aer_dev_fatal               in the folder of the PCI function
///   hwmon/fan1_input            in the card's hwmon folder
///   hwmon/temp{pkg}_input       the same, with the number of the sensor that is labelled "pkg"
///   hwmon/energy{=card}_input   the same, but never a sensor without a label
///   link/current_link_speed     of the port that is the card's slot
///
/// Numbers of sensors differ between the drivers: one board has energy1, temp1 and in0 under i915, and
/// energy2, temp2 and in1 under xe.
class IntelPaths {
 public:
  IntelPaths() = default;
  /// `function`: folder of the PCI function.
  explicit IntelPaths(const std::string& function);

  /// nullopt if the card has no hwmon, no such sensor or no link of its own; the file itself need not exist.
  std::optional<std::string> resolve(std::string_view name);

  /// Files and folders that exist but could not be read, so that names may have failed to resolve.
  const std::vector<std::string>& unreadable() const noexcept { return unreadable_; }

 private:
  std::optional<std::string> resolve_hwmon(std::string_view name);
  std::optional<int> sensor(std::string_view kind, std::string_view label);

  std::string function_;
  std::vector<std::string> unreadable_;
  std::optional<std::string> link_;
  std::optional<Hwmon> hwmon_;
  bool is_labelled_ = false;  // by the driver: xe labels all sensors, i915 none
};

}  // namespace gpumeter::intel
