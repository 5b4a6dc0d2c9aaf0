#include "collectors/files/paths.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/text.hpp"
#include "collectors/files/text.hpp"
#include "collectors/sources/sysfs.hpp"

namespace gpumeter::files {
namespace {

constexpr std::string_view kSlice = "slice/";
constexpr std::string_view kHwmon = "hwmon/";
constexpr std::string_view kBoard = "board{";
constexpr std::string_view kZone = "thermal{";
constexpr std::string_view kTrip = "/trip{";
constexpr std::string_view kSlot = "slot/";

bool is_sensor(std::string_view name) { return name.starts_with(kHwmon) || name.starts_with(kBoard); }

/// The kernel's files of runtime power management, and functions behind a bridge.
bool is_foreign(const std::string& path, const std::string& name) {
  std::error_code error;
  return (name == "power" && std::filesystem::exists(path + "/runtime_status", error)) ||
         pci::parse_address(name).has_value();
}

/// N of "<kind>N_<what>".
std::optional<int> sensor_number(std::string_view file, std::string_view kind, std::string_view what) {
  if (!file.starts_with(kind)) return std::nullopt;
  file.remove_prefix(kind.size());
  const auto number = parse_number<int>(take_until(file, '_'));
  return file == what ? number : std::nullopt;
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

FileIndex::FileIndex(const std::string& folder) : root_(folder) { walk("", 0); }

void FileIndex::walk(const std::string& relative, int depth) {
  for (const std::string& name : sysfs::list(root_ + "/" + relative)) {
    if (files_.size() + folders_.size() >= kMostEntries) return;
    const std::string path = relative + name;
    std::error_code error;
    const std::filesystem::file_status status = std::filesystem::symlink_status(root_ + "/" + path, error);
    if (std::filesystem::is_regular_file(status)) files_.push_back(path);
    if (!std::filesystem::is_directory(status) || is_foreign(root_ + "/" + path, name)) continue;
    folders_.push_back(path);
    if (depth < kDeepest) walk(path + "/", depth + 1);
  }
}

std::vector<std::string> FileIndex::files(std::string_view pattern) const {
  std::vector<std::string> found;
  for (const std::string& path : files_) {
    if (matches(pattern, path)) found.push_back(root_ + "/" + path);
  }
  return found;
}

std::optional<std::string> FileIndex::file(std::string_view pattern) const {
  const auto found = std::ranges::find_if(files_, [&](const auto& path) { return matches(pattern, path); });
  return found == files_.end() ? std::nullopt : std::optional(root_ + "/" + *found);
}

std::string FileIndex::text(std::string_view name) const {
  const std::optional<std::string> path = file("**/" + std::string(name));
  return path ? sysfs::read_text(*path) : std::string();
}

std::vector<std::string> FileIndex::folders(std::string_view pattern) const {
  std::vector<std::string> found;
  std::ranges::copy_if(folders_, std::back_inserter(found),
                       [&](const auto& path) { return matches(pattern, path); });
  return found;
}

Paths::Paths(std::string sysfs_root, std::string folder, const PathRules& rules, bool is_awake)
    : sysfs_root_(std::move(sysfs_root)), folder_(std::move(folder)), rules_(rules), is_awake_(is_awake) {}

std::optional<std::string> Paths::resolve(std::string_view name) {
  if (name.starts_with('/')) return std::string(name);
  if (is_sensor(name)) return resolve_sensor(name);
  if (name.starts_with(kZone)) return resolve_zone(name);
  if (name.starts_with(kSlot) && rules_.slot != nullptr) return resolve_slot(name.substr(kSlot.size()));
  const std::optional<std::string> path = in_folder(name);
  if (!path || path->find('*') == std::string::npos) return path ? folder_ + "/" + *path : path;
  return index().file(*path);
}

std::vector<std::string> Paths::resolve_all(std::string_view name) {
  const std::optional<std::string> pattern = in_folder(name);
  return pattern ? index().files(*pattern) : std::vector<std::string>();
}

// Relative to the device's folder. nullopt: a name of a slice while no slice's rows are bound.
std::optional<std::string> Paths::in_folder(std::string_view name) const {
  if (!name.starts_with(kSlice)) return std::string(name);
  if (slice_ == nullptr) return std::nullopt;
  return *slice_ + "/" + std::string(name.substr(kSlice.size()));
}

const FileIndex& Paths::index() {
  if (!index_) index_.emplace(folder_);
  return *index_;
}

// Removes the part of the name that selects the folders.
std::vector<Paths::Chip> Paths::chips_of(std::string_view& name) {
  if (name.starts_with(kHwmon)) {
    name.remove_prefix(kHwmon.size());
    return own_chips();
  }
  name.remove_prefix(kBoard.size());
  const std::string wanted(take_until(name, '}'));
  name.remove_prefix(std::min<std::size_t>(1, name.size()));
  std::vector<Chip> chips;
  const std::string all = sysfs_root_ + "/class/hwmon/";
  for (const std::string& entry : sysfs::list(all)) {
    if (sysfs::read_text(all + entry + "/name") == wanted)
      chips.push_back({all + entry, sysfs::list(all + entry), {}});
  }
  return chips;
}

const std::vector<Paths::Chip>& Paths::own_chips() {
  if (chips_) return *chips_;
  chips_.emplace();
  if (!rules_.hwmon.empty()) {
    if (std::optional<Chip> chip = named_chip()) chips_->push_back(*std::move(chip));
    return *chips_;
  }
  for (const std::string& file : index().files("**/hwmon/hwmon*/name")) {
    std::string path = file.substr(0, file.rfind('/'));
    std::vector<std::string> files = sysfs::list(path);
    chips_->push_back({std::move(path), std::move(files), {}});
  }
  return *chips_;
}

std::optional<Paths::Chip> Paths::named_chip() {
  const std::string folder = folder_ + "/hwmon";
  const std::vector<std::string> entries = sysfs::list(folder);
  if (entries.empty() && sysfs::probe(folder) != ReadStatus::gone) unreadable_.push_back(folder);
  for (const std::string& entry : entries) {
    std::string path = folder + "/" + entry;
    const std::string name = read_or_note(path + "/name");
    const auto known = std::ranges::find(rules_.hwmon, name, &HwmonChip::name);
    if (known == rules_.hwmon.end()) continue;
    std::vector<std::string> files = sysfs::list(path);
    if (files.empty()) unreadable_.push_back(path);
    return Chip{std::move(path), std::move(files), known->unlabelled};
  }
  return std::nullopt;
}

std::string Paths::read_or_note(const std::string& path) {
  std::string text = sysfs::read_text(path);
  const bool is_known = std::ranges::find(unreadable_, path) != unreadable_.end();
  if (text.empty() && !is_known && sysfs::probe(path) != ReadStatus::gone) unreadable_.push_back(path);
  return text;
}

std::vector<Sensor> Paths::sensors_of(std::string_view name) {
  if (!is_sensor(name)) return {};
  std::vector<Sensor> found;
  for (const Chip& chip : chips_of(name)) {
    const std::string kind(name.substr(0, name.find('{')));
    for (const std::string& file : chip.files) {
      const std::optional<int> number = sensor_number(file, kind, "input");
      if (!number) continue;
      const std::string sensor = kind + std::to_string(*number);
      const std::string label = sysfs::read_text(chip.path + "/" + sensor + "_label");
      found.push_back({label.empty() ? sensor : label, chip.path + "/" + sensor, *number});
    }
  }
  return found;
}

std::optional<std::string> Paths::resolve_sensor(std::string_view name) {
  const std::vector<Chip> chips = chips_of(name);
  for (const Chip& chip : chips) {
    const std::optional<std::string> path = in_chip(chip, name);
    if (path && (chips.size() == 1 || sysfs::File(*path).status() != ReadStatus::gone)) return path;
  }
  return std::nullopt;
}

std::optional<std::string> Paths::in_chip(const Chip& chip, std::string_view name) {
  const std::size_t open = name.find('{');
  if (open == std::string_view::npos) return chip.path + "/" + std::string(name);
  const std::size_t close = name.find('}', open);
  const std::string_view kind = name.substr(0, open);
  const std::optional<int> number = number_of(chip, kind, name.substr(open + 1, close - open - 1));
  if (!number) return std::nullopt;
  return chip.path + "/" + std::string(kind) + std::to_string(*number) + std::string(name.substr(close + 1));
}

// A driver labels all sensors of a kind or none.
std::optional<int> Paths::number_of(const Chip& chip, std::string_view kind, std::string_view label) {
  const bool needs_label = label.starts_with('=');
  if (needs_label) label.remove_prefix(1);
  bool has_labels = false;
  for (const std::string& file : chip.files) {
    const std::optional<int> number = sensor_number(file, kind, "label");
    if (!number) continue;
    has_labels = true;
    if (read_or_note(chip.path + "/" + file) == label) return number;
  }
  if (has_labels || needs_label) return std::nullopt;
  for (const UnlabelledSensor& sensor : chip.unlabelled) {
    if (sensor.kind != kind || sensor.label != label) continue;
    const std::string stem = std::string(kind) + std::to_string(sensor.index) + "_";
    const auto is_its = [&](const std::string& file) { return file.starts_with(stem); };
    if (std::ranges::any_of(chip.files, is_its)) return sensor.index;
  }
  return std::nullopt;
}

std::optional<std::string> Paths::resolve_zone(std::string_view name) const {
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

std::optional<std::string> Paths::resolve_slot(std::string_view name) {
  if (!slot_) {
    const std::optional<pci::Function> function = pci::read_function(folder_);
    if (function && function->vendor == 0) unreadable_.push_back(folder_ + "/uevent");
    slot_ = function ? rules_.slot(*function, is_awake_) : std::nullopt;
  }
  return *slot_ ? std::optional(**slot_ + "/" + std::string(name)) : std::nullopt;
}

}  // namespace gpumeter::files
