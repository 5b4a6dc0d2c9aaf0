#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace gpumeter::tree {

/// The names of the files and folders below a device's folder, as of one walk. Links are not followed, so
/// the walk stays within the device, and neither the kernel's `power` nor functions behind a bridge are
/// entered. Allocates.
class FileIndex {
 public:
  static constexpr std::size_t kMostEntries = 8192;
  static constexpr int kDeepest = 8;

  FileIndex() = default;
  explicit FileIndex(const std::string& folder);

  /// The paths of the files that match (see matches()), relative to the folder or not as `pattern` is, in
  /// natural order.
  std::vector<std::string> files(std::string_view pattern) const;
  std::optional<std::string> file(std::string_view pattern) const;

  /// The same for folders; their paths relative to the device's folder.
  std::vector<std::string> folders(std::string_view pattern) const;

  const std::string& root() const noexcept { return root_; }

 private:
  void walk(const std::string& relative, int depth);

  std::string root_;
  std::vector<std::string> files_;  // relative
  std::vector<std::string> folders_;
};

/// The files `kind`N_input of hwmon folders, each with the text of its `kind`N_label or, without one, with
/// `kind`N.
struct Sensor {
  std::string label;
  std::string stem;  ///< path up to N: ".../hwmon3/temp2"
  int index = 0;
};
std::vector<Sensor> sensors(const std::vector<std::string>& hwmon_folders, std::string_view kind);

/// Lower case, with '_' for everything but letters and digits: "VDD GPU_SOC" -> "vdd_gpu_soc".
std::string label_value(std::string_view text);

}  // namespace gpumeter::tree
