#include "collectors/intel/paths.hpp"

#include "collectors/intel/link.hpp"
#include "collectors/sources/pci.hpp"

namespace gpumeter::intel {
namespace {

// The sensors of i915 (Documentation/ABI/testing/sysfs-driver-intel-i915-hwmon), which have no labels.
struct Position {
  std::string_view kind, label;
  int index;
};
constexpr Position kUnlabelled[] = {
    {"temp", "pkg", 1}, {"in", "pkg", 0}, {"energy", "card", 1}, {"power", "card", 1}};

int unlabelled_index(std::string_view kind, std::string_view label) noexcept {
  for (const Position& position : kUnlabelled) {
    if (position.kind == kind && position.label == label) return position.index;
  }
  return -1;
}

std::optional<std::string> link_of(const std::string& function, std::vector<std::string>& unreadable) {
  const std::optional<pci::Function> found = pci::read_function(function);
  if (found && found->vendor == 0) unreadable.push_back(function + "/uevent");
  return found ? slot_port(*found) : std::nullopt;
}

}  // namespace

IntelPaths::IntelPaths(const std::string& function)
    : function_(function),
      link_(link_of(function, unreadable_)),
      hwmon_(Hwmon::find(function, {"xe"}, unreadable_)),
      is_labelled_(hwmon_.has_value()) {
  if (!hwmon_) hwmon_ = Hwmon::find(function, {"i915"}, unreadable_);
}

std::optional<std::string> IntelPaths::resolve(std::string_view name) {
  constexpr std::string_view kHwmon = "hwmon/";
  constexpr std::string_view kLink = "link/";
  if (name.starts_with(kHwmon)) return resolve_hwmon(name.substr(kHwmon.size()));
  if (!name.starts_with(kLink)) return function_ + "/" + std::string(name);
  if (!link_) return std::nullopt;
  return *link_ + "/" + std::string(name.substr(kLink.size()));
}

std::optional<std::string> IntelPaths::resolve_hwmon(std::string_view name) {
  if (!hwmon_) return std::nullopt;
  const std::size_t open = name.find('{');
  if (open == std::string_view::npos) return hwmon_->path() + "/" + std::string(name);
  const std::size_t close = name.find('}', open);
  const std::string_view kind = name.substr(0, open);
  const std::optional<int> index = sensor(kind, name.substr(open + 1, close - open - 1));
  if (!index) return std::nullopt;
  return hwmon_->path() + "/" + std::string(kind) + std::to_string(*index) +
         std::string(name.substr(close + 1));
}

// No kernel has power*_input, by which Hwmon recognises a sensor without a label.
std::optional<int> IntelPaths::sensor(std::string_view kind, std::string_view label) {
  const bool needs_label = label.starts_with('=');
  if (needs_label) label.remove_prefix(1);
  const int position = is_labelled_ || needs_label ? -1 : unlabelled_index(kind, label);
  const std::optional<int> index = hwmon_->index(kind, label, position, unreadable_);
  return index || kind != "power" || position < 0 ? index : position;
}

}  // namespace gpumeter::intel
