#include "collectors/support/hwmon.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "collectors/support/sysfs.hpp"

namespace gpumeter {
namespace {

/// N of "<kind>N_<what>".
std::optional<int> sensor_index(std::string_view file, std::string_view kind, std::string_view what) {
  if (!file.starts_with(kind)) return std::nullopt;
  file.remove_prefix(kind.size());
  int index = 0;
  const auto [stop, error] = std::from_chars(file.data(), file.data() + file.size(), index);
  if (error != std::errc{}) return std::nullopt;
  file.remove_prefix(static_cast<std::size_t>(stop - file.data()));
  if (!file.starts_with('_') || file.substr(1) != what) return std::nullopt;
  return index;
}

}  // namespace

Hwmon::Hwmon(std::string path) : path_(std::move(path)), files_(sysfs::list(path_)) {}

std::optional<Hwmon> Hwmon::find(const std::string& device, const std::vector<std::string_view>& names) {
  const std::string folder = device + "/hwmon";
  for (const std::string& entry : sysfs::list(folder)) {
    std::string path = folder + "/" + entry;
    const std::string name = sysfs::read_text(path + "/name");
    if (std::find(names.begin(), names.end(), name) != names.end()) return Hwmon(std::move(path));
  }
  return std::nullopt;
}

std::optional<int> Hwmon::index(std::string_view kind, std::string_view label, int unlabelled) const {
  bool labelled = false;
  for (const std::string& file : files_) {
    const std::optional<int> index = sensor_index(file, kind, "label");
    if (!index) continue;
    labelled = true;
    if (sysfs::read_text(path_ + "/" + file) == label) return index;
  }
  const std::string input = std::string(kind) + std::to_string(unlabelled) + "_input";
  if (labelled || std::find(files_.begin(), files_.end(), input) == files_.end()) return std::nullopt;
  return unlabelled;
}

}  // namespace gpumeter
