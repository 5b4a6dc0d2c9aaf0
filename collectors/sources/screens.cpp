#include "collectors/sources/screens.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace gpumeter {
namespace {

/// .../drm/card0/card0-DP-1/dpms of all connectors.
std::vector<sysfs::File> connectors_of(const std::string& card_folder) {
  std::vector<sysfs::File> files;
  for (const std::string& card : sysfs::list(card_folder + "/drm")) {
    if (!card.starts_with("card")) continue;
    for (const std::string& name : sysfs::list(card_folder + "/drm/" + card)) {
      if (!name.starts_with(card + "-")) continue;
      sysfs::File file(card_folder + "/drm/" + card + "/" + name + "/dpms");
      if (file.status() == ReadStatus::ok) files.push_back(std::move(file));
    }
  }
  return files;
}

bool says_on(const sysfs::File& dpms) noexcept {
  std::array<char, 16> buffer{};
  const sysfs::Bytes got = dpms.read(buffer);
  return got.status == ReadStatus::ok && sysfs::trimmed({buffer.data(), got.size}) == "On";
}

}  // namespace

Screens::Screens(const std::string& card_folder) : dpms_(connectors_of(card_folder)) {}

bool Screens::any_on() const noexcept { return std::any_of(dpms_.begin(), dpms_.end(), says_on); }

}  // namespace gpumeter
