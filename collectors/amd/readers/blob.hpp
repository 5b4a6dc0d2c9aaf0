#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "collectors/amd/gpu_metrics/fields.hpp"
#include "collectors/amd/readers/basic.hpp"

/// Readers of values from gpu_metrics. A field binds by its version alone, since some firmware returns 0 at
/// first and values later.
namespace gpumeter::amd {

namespace readers {

Reader bind_blob(AmdContext& context, const ReadSource& source);
Reader bind_counter(AmdContext& context, const ReadSource& source);
Reader bind_highest(AmdContext& context, const ReadSource& source);
Reader bind_part_highest(AmdContext& context, const ReadSource& source);
Reader bind_either(AmdContext& context, const ReadSource& source);
Reader bind_link_states(AmdContext& context, const ReadSource& source);
Reader bind_dram(AmdContext& context, const ReadSource& source);
Reader bind_energy(AmdContext& context, const ReadSource& source);
Reader bind_throttle(AmdContext& context, const ReadSource& source);
Reader bind_residency(AmdContext& context, const ReadSource& source);

inline constexpr std::string_view kBlobPrefix = "gpu_metrics.";

/// A field, and an element of it in the bits above: 0 for the first available element, otherwise its index +
/// 1.
struct BlobElement {
  static constexpr int kFieldBits = 16;
  static constexpr int kFieldMask = (1 << kFieldBits) - 1;

  std::size_t field;
  std::size_t element;

  static constexpr BlobElement of(std::uint64_t argument) noexcept {
    return {argument & kFieldMask, argument >> kFieldBits};
  }
};

consteval std::size_t field_of(std::string_view name) {
  if (!name.starts_with(kBlobPrefix)) throw name;
  return known_blob_field(name.substr(kBlobPrefix.size()));
}

/// "gpu_metrics.temperature_hbm[3]", or without an index.
consteval std::uint64_t element_of(std::string_view name) {
  const std::size_t bracket = name.find('[');
  const std::uint64_t field = field_of(name.substr(0, bracket));
  if (bracket == std::string_view::npos) return field;
  const auto index = static_cast<std::uint64_t>(name.at(bracket + 1) - '0');
  return name.at(bracket + 2) == ']' && index < 10 ? field | (index + 1) << BlobElement::kFieldBits
                                                   : throw name;
}

/// Both fields of "gpu_metrics.a | gpu_metrics.b".
consteval std::uint64_t either_of(std::string_view names) {
  constexpr std::string_view kBar = " | ";
  const std::size_t bar = names.find(kBar);
  const std::uint64_t second = field_of(names.substr(bar + kBar.size()));
  return field_of(names.substr(0, bar)) | second << BlobElement::kFieldBits;
}

}  // namespace readers

/// A field in base units: "gpu_metrics.voltage_soc". For an array, the named element
/// ("gpu_metrics.temperature_hbm[3]") or the first available one: the first die's clock stands for all.
consteval AmdSource blob(std::string_view name) {
  return {readers::bind_blob, {name, readers::element_of(name)}};
}

/// "a | b": b if a is not filled.
consteval AmdSource blob_either(std::string_view names) {
  return {readers::bind_either, {names, readers::either_of(names)}};
}

/// A counter of the hardware; for an array, the sum of all elements. Binds only while the card is awake,
/// since a sleeping card does not show whether it counts.
consteval AmdSource blob_counter(std::string_view name) {
  return {readers::bind_counter, {name, readers::field_of(name)}};
}

/// The highest element of an array, over all partitions.
consteval AmdSource blob_highest(std::string_view name) {
  return {readers::bind_highest, {name, readers::field_of(name)}};
}

/// The highest of the partition's elements.
consteval AmdSource part_highest(std::string_view name) {
  return {readers::bind_part_highest, {name, readers::field_of(name)}};
}

/// Number of links in one of the states whose bits are set: 0b10 for up (1).
constexpr AmdSource xgmi_links(std::uint64_t states) noexcept {
  return {readers::bind_link_states, {"gpu_metrics.xgmi_link_status", states}};
}

/// Memory traffic relative to its maximum. From 1.4 on average_umc_activity has this meaning: the firmware's
/// DramBandwidthUtilization (kernel 6.12, smu_v13_0_6_ppt.c). In earlier versions it is busy time.
constexpr AmdSource dram_bandwidth() noexcept {
  return {readers::bind_dram, {"gpu_metrics.average_umc_activity"}};
}

/// The accumulator in joules, if its unit is known and it is not stuck at 0.
constexpr AmdSource blob_energy() noexcept {
  return {readers::bind_energy, {"gpu_metrics.energy_accumulator"}};
}

/// 1 while any of the chip-independent throttler bits of `mask` is set. Versions without those bits are read
/// through the chip's own bits, if these are known.
constexpr AmdSource throttle(std::uint64_t mask) noexcept {
  return {readers::bind_throttle, {"gpu_metrics.indep_throttle_status", mask}};
}

/// Seconds during which the residency was active; see ThrottleResidency. Up to three: "gpu_metrics.a |
/// gpu_metrics.b".
constexpr AmdSource residency(std::string_view names) noexcept { return {readers::bind_residency, {names}}; }

}  // namespace gpumeter::amd
