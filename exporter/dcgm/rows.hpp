#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "collectors/api/descriptor.hpp"

namespace gpumeter::dcgm {

/// The names and units of dcgm-exporter: those of all versions up to 4.8, or those since 4.9.
enum class Version : std::uint8_t { v4_8, v4_9 };

/// How a card's value follows from the series of a family.
enum class Form : std::uint8_t {
  sum,       ///< the sum of the matching series
  divided,   ///< on a divided card one value for each instance, from gpu_partition_*; otherwise the sum
  graphics,  ///< as `divided`, of the graphics engine; before Hopper, of the whole card
  last_xid,  ///< the code with the newest time stamp; 0 if the card had no event
  presence,  ///< 1 if a matching series is 1, 0 if the family has other series of the card
};

/// Conversion from a base unit: value * times / by.
struct Unit {
  std::string_view name;  ///< in the HELP text; empty if there is none
  double times = 1;
  double by = 1;
};

/// One metric of dcgm-exporter. packaging/mixin/dcgm/rows.libsonnet has the same rows for the rule packs;
/// a test compares them. Metrics that are rates are in the rule packs only.
struct Row {
  std::string_view old_name;  ///< up to 4.8
  std::string_view new_name;  ///< since 4.9; empty if its spelling is unknown
  std::string_view help;      ///< a noun phrase without full stop
  MetricType type;
  const MetricDescriptor* family;
  std::string_view label;  ///< the series with this label and value; empty: all
  std::string_view value;
  Form form;
  Unit old_unit;
  Unit new_unit;

  std::string_view name(Version version) const noexcept {
    return version == Version::v4_8 ? old_name : new_name;
  }
  const Unit& unit(Version version) const noexcept { return version == Version::v4_8 ? old_unit : new_unit; }
};

std::span<const Row> rows() noexcept;

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
