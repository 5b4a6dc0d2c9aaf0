#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gpumeter {

/// The hwmon folder of a device (Documentation/hwmon/sysfs-interface.rst). It is looked up at each attach,
/// because its number changes with each load of a driver. Sensors are found by label: their numbers differ
/// from chip to chip, labels do not.
class Hwmon {
 public:
  /// Finds the folder below `device` whose `name` is one of `names`; nullopt if there is none. Adds to
  /// `unreadable` the files and folders that exist but could not be read.
  static std::optional<Hwmon> find(const std::string& device, const std::vector<std::string_view>& names,
                                   std::vector<std::string>& unreadable);

  /// A hwmon folder whose path is known.
  static Hwmon at(std::string path) { return Hwmon(std::move(path)); }

  const std::string& path() const noexcept { return path_; }

  /// Returns N of the sensor `kind`N (temp, freq, in, power) with this label. If no sensor of the kind has a
  /// label, returns `unlabelled`, provided that `kind``unlabelled`_input exists. Adds labels to `unreadable`
  /// as find() does.
  std::optional<int> index(std::string_view kind, std::string_view label, int unlabelled,
                           std::vector<std::string>& unreadable) const;

 private:
  explicit Hwmon(std::string path);

  std::string path_;
  std::vector<std::string> files_;
};

}  // namespace gpumeter
