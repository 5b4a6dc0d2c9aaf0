#include "collectors/intel/gts.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/text.hpp"
#include "collectors/sources/sysfs.hpp"

namespace gpumeter::intel {
namespace {

/// N of "<prefix>N".
std::optional<int> number_of(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  return parse_number<int>(name.substr(prefix.size()));
}

bool exists(const std::string& path) { return sysfs::File(path).status() != ReadStatus::gone; }

std::string first_of(const std::string& preferred, const std::string& other) {
  return exists(preferred) ? preferred : other;
}

// gtidle/name is "gt0-rc" for render and compute, "gt1-mc" for media.
Gt xe_gt(const std::string& folder, int index) {
  const std::string freq = folder + "/freq0/";
  Gt gt{index,
        sysfs::read_text(folder + "/gtidle/name").ends_with("-mc"),
        freq + "act_freq",
        first_of(freq + "rp0_freq", freq + "max_freq"),
        folder + "/gtidle/idle_residency_ms",
        freq + "throttle",
        "reason_",
        {}};
  for (const std::string& engines : sysfs::list(folder + "/engines")) gt.engines.push_back(engines);
  return gt;
}

// With i915, only Meteor Lake and its successors have a second GT: that of media.
Gt i915_gt(const std::string& folder, int index) {
  return {index,
          index > 0,
          folder + "/rps_act_freq_mhz",
          folder + "/rps_RP0_freq_mhz",
          folder + "/rc6_residency_ms",
          folder,
          "throttle_reason_",
          {}};
}

std::vector<Gt> i915_gts(const std::string& card) {
  std::vector<Gt> gts;
  for (const std::string& name : sysfs::list(card + "/gt")) {
    if (const auto index = number_of(name, "gt")) gts.push_back(i915_gt(card + "/gt/" + name, *index));
  }
  if (gts.empty() && exists(card + "/gt_act_freq_mhz")) {
    gts.push_back({0,
                   false,
                   card + "/gt_act_freq_mhz",
                   card + "/gt_RP0_freq_mhz",
                   card + "/power/rc6_residency_ms",
                   "",
                   "",
                   {}});
  }
  return gts;
}

}  // namespace

std::vector<Gt> find_gts(const std::string& function) {
  std::vector<Gt> gts;
  for (const std::string& tile : sysfs::list(function)) {
    if (!number_of(tile, "tile")) continue;
    for (const std::string& name : sysfs::list(function + "/" + tile)) {
      const auto index = number_of(name, "gt");
      if (index) gts.push_back(xe_gt(function + "/" + tile + "/" + name, *index));
    }
  }
  for (const std::string& node : sysfs::list(function + "/drm")) {
    if (gts.empty() && number_of(node, "card")) gts = i915_gts(function + "/drm/" + node);
  }
  std::sort(gts.begin(), gts.end(), [](const Gt& a, const Gt& b) { return a.index < b.index; });
  return gts;
}

}  // namespace gpumeter::intel
