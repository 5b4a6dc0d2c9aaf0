#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "exporter/dcgm/rows.hpp"

namespace gpumeter::dcgm {

/// The values of the query parameter `names` that choose dcgm-exporter's names.
struct Choice {
  std::string_view name;
  Version version;
};
inline constexpr Choice kChoices[] = {
    {"dcgm", Version::v4_8}, {"dcgm-4.8", Version::v4_8}, {"dcgm-4.9", Version::v4_9}};

constexpr std::optional<Version> version_of(std::string_view choice) noexcept {
  for (const Choice& each : kChoices) {
    if (each.name == choice) return each.version;
  }
  return std::nullopt;
}

}  // namespace gpumeter::dcgm
