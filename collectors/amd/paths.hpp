#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/sources/hwmon.hpp"

namespace gpumeter::amd {

/// Resolves the file names of the table to paths of one attached card:
///
///   gpu_busy_percent              in the folder of the PCI function
///   hwmon/power1_average          in the card's hwmon folder
///   hwmon/temp{edge}_input        the same, with the number of the sensor that is labelled "edge"
///   upstream/current_link_speed   of the port that is the card's slot
class AmdPaths {
 public:
  AmdPaths() = default;
  /// `function`: folder of the PCI function.
  explicit AmdPaths(const std::string& function);

  /// nullopt if the card has no hwmon or no such sensor; the file itself need not exist.
  std::optional<std::string> resolve(std::string_view name);

  /// Folder of the port that is the card's slot.
  const std::string& upstream() const noexcept { return upstream_; }

  /// Files and folders that exist but could not be read, so that names may have failed to resolve.
  const std::vector<std::string>& unreadable() const noexcept { return unreadable_; }

 private:
  std::optional<std::string> resolve_hwmon(std::string_view name);

  std::string function_;
  std::vector<std::string> unreadable_;
  std::string upstream_;
  std::optional<Hwmon> hwmon_;
};

}  // namespace gpumeter::amd
