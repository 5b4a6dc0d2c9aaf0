#include "collectors/sources/hwmon.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "collectors/sources/sysfs.hpp"

namespace gpumeter {
namespace {

/// Parses N from "<kind>N_<what>".
std::optional<int> sensor_index(std::string_view file, std::string_view kind, std::string_view what) {
  if (!file.starts_with(kind)) return std::nullopt;
  file.remove_prefix(kind.size());
  const auto index = parse_number<int>(take_until(file, '_'));
  return file == what ? index : std::nullopt;
}

/// Returns the file's text. Adds the path to `unreadable` if the text is empty.
std::string read_or_note(const std::string& path, std::vector<std::string>& unreadable) {
  std::string text = sysfs::read_text(path);
  const bool is_known = std::find(unreadable.begin(), unreadable.end(), path) != unreadable.end();
  if (text.empty() && !is_known && sysfs::probe(path) != ReadStatus::gone) unreadable.push_back(path);
  return text;
}

}  // namespace

Hwmon::Hwmon(std::string path) : path_(std::move(path)), files_(sysfs::list(path_)) {}

std::optional<Hwmon> Hwmon::find(const std::string& device, const std::vector<std::string_view>& names,
                                 std::vector<std::string>& unreadable) {
  const std::string folder = device + "/hwmon";
  const std::vector<std::string> entries = sysfs::list(folder);
  if (entries.empty() && sysfs::probe(folder) != ReadStatus::gone) unreadable.push_back(folder);
  for (const std::string& entry : entries) {
    std::string path = folder + "/" + entry;
    const std::string name = read_or_note(path + "/name", unreadable);
    if (std::find(names.begin(), names.end(), name) == names.end()) continue;
    Hwmon found(std::move(path));
    if (found.files_.empty()) unreadable.push_back(found.path_);
    return found;
  }
  return std::nullopt;
}

std::optional<int> Hwmon::index(std::string_view kind, std::string_view label, int unlabelled,
                                std::vector<std::string>& unreadable) const {
  bool labelled = false;
  for (const std::string& file : files_) {
    const std::optional<int> index = sensor_index(file, kind, "label");
    if (!index) continue;
    labelled = true;
    if (read_or_note(path_ + "/" + file, unreadable) == label) return index;
  }
  const std::string input = std::string(kind) + std::to_string(unlabelled) + "_input";
  if (labelled || std::find(files_.begin(), files_.end(), input) == files_.end()) return std::nullopt;
  return unlabelled;
}

}  // namespace gpumeter
