#include "collectors/tree/file_index.hpp"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/text.hpp"
#include "collectors/sources/pci.hpp"
#include "collectors/sources/sysfs.hpp"
#include "collectors/tree/text.hpp"

namespace gpumeter::tree {
namespace {

bool exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

/// The kernel's files of runtime power management, and functions behind a bridge.
bool is_foreign(const std::string& path, const std::string& name) {
  return (name == "power" && exists(path + "/runtime_status")) || pci::parse_address(name).has_value();
}

std::optional<int> sensor_number(std::string_view file, std::string_view kind) {
  if (!file.starts_with(kind)) return std::nullopt;
  file.remove_prefix(kind.size());
  const auto number = parse_number<int>(take_until(file, '_'));
  return file == "input" ? number : std::nullopt;
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

std::vector<std::string> FileIndex::folders(std::string_view pattern) const {
  std::vector<std::string> found;
  std::ranges::copy_if(folders_, std::back_inserter(found),
                       [&](const auto& path) { return matches(pattern, path); });
  return found;
}

std::vector<Sensor> sensors(const std::vector<std::string>& hwmon_folders, std::string_view kind) {
  std::vector<Sensor> found;
  for (const std::string& folder : hwmon_folders) {
    for (const std::string& file : sysfs::list(folder)) {
      const std::optional<int> number = sensor_number(file, kind);
      if (!number) continue;
      const std::string name = std::string(kind) + std::to_string(*number);
      const std::string label = sysfs::read_text(folder + "/" + name + "_label");
      found.push_back({label.empty() ? name : label, folder + "/" + name, *number});
    }
  }
  return found;
}

std::string label_value(std::string_view text) {
  std::string value(text);
  std::ranges::transform(value, value.begin(), [](char c) {
    if (c >= 'A' && c <= 'Z') return static_cast<char>(c - 'A' + 'a');
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ? c : '_';
  });
  return value;
}

}  // namespace gpumeter::tree
