#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/tree/file_index.hpp"

namespace gpumeter::tree {

/// Resolves the names of a table to paths:
///
///   npu_busy_time_us                   in the device's folder
///   devfreq/*/cur_freq                 the same, with patterns as in matches(); the first that matches
///   slice/**/nc_time_in_use            in the slice whose rows are being bound
///   hwmon/temp{GPU core}_input         in the hwmon folders of the device: the sensor with this label
///   hwmon/temp1_input                  the same, by number
///   board{ina3221}/in{VDD_IN}_input    in the machine's hwmon folders with this name
///   thermal{gpu-thermal}/temp          in the machine's thermal zone of this type, a pattern
///   thermal{gpu-thermal}/trip{critical}  the temperature of the zone's trip point of this type
///   /sys/...                           itself
///
/// "{*}" as a sensor's label stands for each sensor of the kind; see sensors_of().
class TreePaths {
 public:
  TreePaths() = default;
  TreePaths(std::string sysfs_root, const std::string& folder);

  /// nullopt if there is no such file.
  std::optional<std::string> resolve(std::string_view name) const;

  /// Every file that matches, for sums. Names of the device's folder and of slices only.
  std::vector<std::string> resolve_all(std::string_view name) const;

  /// The sensors of a name with "{*}". Their stems and the text behind "{*}" are paths.
  std::vector<Sensor> sensors_of(std::string_view name) const;

  /// A slice's folder, relative to the device's; null: the whole device.
  void turn_to(const std::string* slice) noexcept { slice_ = slice; }

  const FileIndex& index() const noexcept { return index_; }

 private:
  std::optional<std::string> pattern_of(std::string_view name) const;
  std::vector<std::string> hwmon_folders(std::string_view& name) const;
  std::optional<std::string> resolve_sensor(std::string_view name) const;
  std::optional<std::string> resolve_zone(std::string_view name) const;

  std::string sysfs_root_;
  FileIndex index_;
  const std::string* slice_ = nullptr;
};

}  // namespace gpumeter::tree
