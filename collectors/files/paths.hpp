#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/sources/pci.hpp"

namespace gpumeter::files {

/// A sensor of a driver that does not label its sensors: the label that a table uses, and the sensor's
/// number.
struct UnlabelledSensor {
  std::string_view kind, label;
  int index;
};

/// A hwmon folder (Documentation/hwmon/sysfs-interface.rst), by the text of its file `name`.
struct HwmonChip {
  std::string_view name;
  std::span<const UnlabelledSensor> unlabelled;
};

/// Where a kind of device has its files, in addition to its own folder. The tables have static storage.
struct PathRules {
  /// The device's hwmon folder, directly below its own. Empty: all hwmon folders anywhere below it.
  std::span<const HwmonChip> hwmon;
  /// Finds the folder of the port that is the card's slot; nullopt: the card has no link. `is_awake`: the
  /// card may be read. null: the names have no "slot/".
  std::optional<std::string> (*slot)(const pci::Function& function, bool is_awake) = nullptr;
};

/// A sensor `kind`N of a hwmon folder, with the text of its `kind`N_label or, without one, with `kind`N.
struct Sensor {
  std::string label;
  std::string stem;  ///< path up to N: ".../hwmon3/temp2"
  int index = 0;
};

/// The names of the files and folders below a folder, as of one walk. Links are not followed, so the walk
/// stays within the device, and neither the kernel's `power` nor functions behind a bridge are entered.
class FileIndex {
 public:
  static constexpr std::size_t kMostEntries = 8192;
  static constexpr int kDeepest = 8;

  explicit FileIndex(const std::string& folder);

  /// The paths of the files that match (see matches()), in natural order; `pattern` is relative to the
  /// folder.
  std::vector<std::string> files(std::string_view pattern) const;
  std::optional<std::string> file(std::string_view pattern) const;
  /// The text of the first file of that name, wherever it is; empty without one.
  std::string text(std::string_view name) const;
  /// The folders that match, relative to the folder.
  std::vector<std::string> folders(std::string_view pattern) const;

 private:
  void walk(const std::string& relative, int depth);

  std::string root_;
  std::vector<std::string> files_;  // relative
  std::vector<std::string> folders_;
};

/// Resolves the names of a table to paths of one device. Reads names of files and labels, which wakes no
/// device. Allocates.
///
///   npu_busy_time_us                   in the device's folder
///   devfreq/*/cur_freq                 the same, with patterns as in matches(); the first that matches
///   slice/**/nc_time_in_use            in the slice whose rows are being bound
///   hwmon/temp1_input                  in the device's hwmon folders
///   hwmon/temp{GPU core}_input         the same: the sensor with this label
///   hwmon/energy{=card}_input          the same, but never a sensor without a label
///   board{ina3221}/in{VDD_IN}_input    in the machine's hwmon folders with this name
///   thermal{gpu-thermal}/temp          in the machine's thermal zone of this type, a pattern
///   thermal{gpu-thermal}/trip{critical}  the temperature of the zone's trip point of this type
///   slot/current_link_speed            of the port that is the card's slot
///   /sys/...                           itself
///
/// "{*}" as a sensor's label stands for each sensor of the kind; see sensors_of(). Sensors are found by label
/// because their numbers differ between chips, drivers and loads of a driver.
class Paths {
 public:
  Paths() = default;
  /// `is_awake`: see PathRules::slot.
  Paths(std::string sysfs_root, std::string folder, const PathRules& rules = {}, bool is_awake = true);

  /// nullopt if the device has no such folder, sensor or match; otherwise the file itself need not exist.
  std::optional<std::string> resolve(std::string_view name);

  /// Every file that matches, for sums. Names of the device's folder and of slices only.
  std::vector<std::string> resolve_all(std::string_view name);

  /// The sensors of a name with "{*}". Their stems and the text behind "{*}" are paths.
  std::vector<Sensor> sensors_of(std::string_view name);

  /// The folders below the device's that match, relative to it.
  std::vector<std::string> folders(std::string_view pattern) { return index().folders(pattern); }

  /// A slice's folder, relative to the device's; null: the whole device.
  void turn_to(const std::string* slice) noexcept { slice_ = slice; }

  /// Files and folders that exist but could not be read, so that names may have failed to resolve.
  const std::vector<std::string>& unreadable() const noexcept { return unreadable_; }

 private:
  struct Chip {
    std::string path;
    std::vector<std::string> files;
    std::span<const UnlabelledSensor> unlabelled;
  };

  const FileIndex& index();
  std::optional<std::string> in_folder(std::string_view name) const;
  std::vector<Chip> chips_of(std::string_view& name);
  const std::vector<Chip>& own_chips();
  std::optional<Chip> named_chip();
  std::optional<std::string> in_chip(const Chip& chip, std::string_view name);
  std::optional<int> number_of(const Chip& chip, std::string_view kind, std::string_view label);
  std::optional<std::string> resolve_sensor(std::string_view name);
  std::optional<std::string> resolve_zone(std::string_view name) const;
  std::optional<std::string> resolve_slot(std::string_view name);
  std::string read_or_note(const std::string& path);

  std::string sysfs_root_;
  std::string folder_;
  PathRules rules_;
  bool is_awake_ = true;
  const std::string* slice_ = nullptr;
  std::vector<std::string> unreadable_;
  // Found by the first name that needs them.
  std::optional<FileIndex> index_;
  std::optional<std::vector<Chip>> chips_;
  std::optional<std::optional<std::string>> slot_;
};

}  // namespace gpumeter::files
