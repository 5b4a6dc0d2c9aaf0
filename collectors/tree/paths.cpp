#include "collectors/tree/paths.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "collectors/sources/hwmon.hpp"
#include "collectors/sources/sysfs.hpp"
#include "collectors/tree/text.hpp"

namespace gpumeter::tree {
namespace {

constexpr std::string_view kSlice = "slice/";
constexpr std::string_view kHwmon = "hwmon/";
constexpr std::string_view kBoard = "board{";
constexpr std::string_view kZone = "thermal{";
constexpr std::string_view kTrip = "/trip{";

bool exists(const std::string& path) { return sysfs::File(path).status() != ReadStatus::gone; }

bool is_sensor(std::string_view name) { return name.starts_with(kHwmon) || name.starts_with(kBoard); }

/// The path of `kind`{label}`rest` in one hwmon folder.
std::optional<std::string> labelled(const std::string& folder, std::string_view name) {
  const std::size_t open = name.find('{');
  const std::size_t close = name.find('}', open);
  const std::string_view kind = name.substr(0, open);
  std::vector<std::string> unreadable;
  const auto index = Hwmon::at(folder).index(kind, name.substr(open + 1, close - open - 1), -1, unreadable);
  if (!index) return std::nullopt;
  return folder + "/" + std::string(kind) + std::to_string(*index) + std::string(name.substr(close + 1));
}

/// The temperature of the first trip point of a type: trip_point_N_temp next to trip_point_N_type
/// (Documentation/ABI/testing/sysfs-class-thermal). `name`: "/trip{critical}".
std::optional<std::string> trip_point(const std::string& zone, std::string_view name) {
  constexpr std::string_view kType = "_type";
  name.remove_prefix(kTrip.size());
  const std::string_view type = take_until(name, '}');
  for (const std::string& file : sysfs::list(zone)) {
    if (!matches("trip_point_*_type", file) || sysfs::read_text(zone + "/" + file) != type) continue;
    return zone + "/" + file.substr(0, file.size() - kType.size()) + "_temp";
  }
  return std::nullopt;
}

}  // namespace

TreePaths::TreePaths(std::string sysfs_root, const std::string& folder)
    : sysfs_root_(std::move(sysfs_root)), index_(folder) {}

std::optional<std::string> TreePaths::resolve(std::string_view name) const {
  if (name.starts_with('/'))
    return exists(std::string(name)) ? std::optional(std::string(name)) : std::nullopt;
  if (is_sensor(name)) return resolve_sensor(name);
  if (name.starts_with(kZone)) return resolve_zone(name);
  const std::optional<std::string> pattern = pattern_of(name);
  return pattern ? index_.file(*pattern) : std::nullopt;
}

std::vector<std::string> TreePaths::resolve_all(std::string_view name) const {
  const std::optional<std::string> pattern = pattern_of(name);
  return pattern ? index_.files(*pattern) : std::vector<std::string>();
}

// nullopt: a name of a slice while no slice's rows are bound.
std::optional<std::string> TreePaths::pattern_of(std::string_view name) const {
  if (!name.starts_with(kSlice)) return std::string(name);
  if (slice_ == nullptr) return std::nullopt;
  return *slice_ + "/" + std::string(name.substr(kSlice.size()));
}

// Removes the part of the name that selects the folders.
std::vector<std::string> TreePaths::hwmon_folders(std::string_view& name) const {
  std::vector<std::string> folders;
  if (name.starts_with(kHwmon)) {
    name.remove_prefix(kHwmon.size());
    for (const std::string& file : index_.files("**/hwmon/hwmon*/name"))
      folders.push_back(file.substr(0, file.rfind('/')));
    return folders;
  }
  name.remove_prefix(kBoard.size());
  const std::string chip(take_until(name, '}'));
  name.remove_prefix(std::min<std::size_t>(1, name.size()));
  const std::string all = sysfs_root_ + "/class/hwmon";
  for (const std::string& entry : sysfs::list(all)) {
    if (sysfs::read_text(all + "/" + entry + "/name") == chip) folders.push_back(all + "/" + entry);
  }
  return folders;
}

std::vector<Sensor> TreePaths::sensors_of(std::string_view name) const {
  if (!is_sensor(name)) return {};
  const std::vector<std::string> folders = hwmon_folders(name);
  return sensors(folders, name.substr(0, name.find('{')));
}

std::optional<std::string> TreePaths::resolve_sensor(std::string_view name) const {
  const std::vector<std::string> folders = hwmon_folders(name);
  for (const std::string& folder : folders) {
    const bool has_label = name.find('{') != std::string_view::npos;
    const std::optional<std::string> path =
        has_label ? labelled(folder, name) : std::optional(folder + "/" + std::string(name));
    if (path && exists(*path)) return path;
  }
  return std::nullopt;
}

std::optional<std::string> TreePaths::resolve_zone(std::string_view name) const {
  name.remove_prefix(kZone.size());
  const std::string_view type = take_until(name, '}');
  const std::string all = sysfs_root_ + "/class/thermal";
  for (const std::string& zone : sysfs::list(all)) {
    const std::string folder = all + "/" + zone;
    if (!zone.starts_with("thermal_zone") || !matches(type, sysfs::read_text(folder + "/type"))) continue;
    return name.starts_with(kTrip) ? trip_point(folder, name) : folder + std::string(name);
  }
  return std::nullopt;
}

}  // namespace gpumeter::tree
