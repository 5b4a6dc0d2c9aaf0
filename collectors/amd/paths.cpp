#include "collectors/amd/paths.hpp"

#include "collectors/sources/pci.hpp"

namespace gpumeter::amd {
namespace {

// The positions of amdgpu's sensors (kernel 6.12, amdgpu_pm.c). The older radeon driver has the same order
// but no labels.
struct Position {
  std::string_view label;
  int index;
};
constexpr Position kUnlabelled[] = {{"edge", 1}, {"junction", 2}, {"mem", 3},  {"sclk", 1},
                                    {"mclk", 2}, {"vddgfx", 0},   {"vddnb", 1}};

int unlabelled_index(std::string_view label) noexcept {
  for (const Position& position : kUnlabelled) {
    if (position.label == label) return position.index;
  }
  return -1;
}

std::string upstream_of(const std::string& function, std::vector<std::string>& unreadable) {
  const std::optional<pci::Function> found = pci::read_function(function);
  if (found && found->vendor == 0) unreadable.push_back(function + "/uevent");
  return found ? pci::upstream_port(*found) : function;
}

}  // namespace

AmdPaths::AmdPaths(const std::string& function)
    : function_(function),
      upstream_(upstream_of(function, unreadable_)),
      hwmon_(Hwmon::find(function, {"amdgpu", "radeon"}, unreadable_)) {}

std::optional<std::string> AmdPaths::resolve(std::string_view name) {
  constexpr std::string_view kHwmon = "hwmon/";
  constexpr std::string_view kUpstream = "upstream/";
  if (name.starts_with(kHwmon)) return resolve_hwmon(name.substr(kHwmon.size()));
  if (name.starts_with(kUpstream)) return upstream_ + "/" + std::string(name.substr(kUpstream.size()));
  return function_ + "/" + std::string(name);
}

std::optional<std::string> AmdPaths::resolve_hwmon(std::string_view name) {
  if (!hwmon_) return std::nullopt;
  const std::size_t open = name.find('{');
  if (open == std::string_view::npos) return hwmon_->path() + "/" + std::string(name);
  const std::size_t close = name.find('}', open);
  const std::string_view kind = name.substr(0, open);
  const std::string_view label = name.substr(open + 1, close - open - 1);
  const std::optional<int> index = hwmon_->index(kind, label, unlabelled_index(label), unreadable_);
  if (!index) return std::nullopt;
  return hwmon_->path() + "/" + std::string(kind) + std::to_string(*index) +
         std::string(name.substr(close + 1));
}

}  // namespace gpumeter::amd
