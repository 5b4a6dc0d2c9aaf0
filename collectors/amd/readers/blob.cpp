#include "collectors/amd/readers/blob.hpp"

#include <algorithm>

#include "collectors/amd/chip.hpp"
#include "collectors/amd/gpu_metrics/units.hpp"
#include "collectors/amd/readers/throttle_residency.hpp"

namespace gpumeter::amd::readers {
namespace {

constexpr std::size_t kIndependentThrottle = known_blob_field("indep_throttle_status");
constexpr std::size_t kChipThrottle = known_blob_field("throttle_status");
constexpr std::size_t kEnergy = known_blob_field("energy_accumulator");
constexpr std::size_t kMemoryActivity = known_blob_field("average_umc_activity");
constexpr std::size_t kLinkStatus = known_blob_field("xgmi_link_status");
constexpr std::size_t kPowerSince1_4 = known_blob_field("curr_socket_power");

BlobElement element(int handle) noexcept { return BlobElement::of(static_cast<std::uint64_t>(handle)); }

/// The fields of "gpu_metrics.a | gpu_metrics.b"; the table's names are known ones.
ThrottleResidency::Fields fields_of(std::string_view names) {
  constexpr std::string_view kBar = " | ";
  ThrottleResidency::Fields fields;
  for (std::optional<std::size_t>& field : fields) {
    if (names.empty()) break;
    const std::size_t end = std::min(names.find(kBar), names.size());
    field = blob_field(names.substr(kBlobPrefix.size(), end - kBlobPrefix.size()));
    names.remove_prefix(std::min(end + kBar.size(), names.size()));
  }
  return fields;
}

}  // namespace

Handle bind_blob(AmdContext& context, const ReadSource& source) {
  const BlobElement wanted = BlobElement::of(source.argument);
  const std::size_t index = wanted.element == 0 ? 0 : wanted.element - 1;
  return context.has_blob_field(wanted.field, index) ? Handle(static_cast<int>(source.argument))
                                                     : std::nullopt;
}

Handle bind_counter(AmdContext& context, const ReadSource& source) {
  return context.awake() ? bind_blob(context, source) : std::nullopt;
}

Sample read_blob(AmdContext& context, int handle) noexcept {
  const BlobElement wanted = element(handle);
  if (wanted.element == 0) return context.blob().value(wanted.field);
  return context.blob().value(wanted.field, wanted.element - 1);
}

Sample read_sum(AmdContext& context, int handle) noexcept {
  return context.blob().sum(element(handle).field);
}

Sample read_highest(AmdContext& context, int handle) noexcept {
  return context.blob().highest(element(handle).field);
}

Handle bind_either(AmdContext& context, const ReadSource& source) {
  const BlobElement both = BlobElement::of(source.argument);
  const bool any = context.has_blob_field(both.field) || context.has_blob_field(both.element);
  return any ? Handle(static_cast<int>(source.argument)) : std::nullopt;
}

Sample read_either(AmdContext& context, int handle) noexcept {
  const BlobElement both = element(handle);
  const Sample first = context.blob().value(both.field);
  return first.status == ReadStatus::unsupported ? context.blob().value(both.element) : first;
}

Handle bind_flags(AmdContext& context, const ReadSource& source) {
  if (!context.has_blob_field(kLinkStatus)) return std::nullopt;
  return context.keep(AmdContext::Flags{kLinkStatus, source.argument});
}

Sample read_count(AmdContext& context, int handle) noexcept {
  const AmdContext::Flags flags = context.flags(handle);
  return context.blob().count_of(flags.field, flags.mask);
}

Handle bind_dram(AmdContext& context, const ReadSource&) {
  const bool is_traffic = context.has_blob_field(kMemoryActivity) && context.has_blob_field(kPowerSince1_4);
  return is_traffic ? Handle(static_cast<int>(kMemoryActivity)) : std::nullopt;
}

// 0 is what a chip without an accumulator has, and the second die of an MI250. Of a sleeping card none of
// this can be told.
Handle bind_energy(AmdContext& context, const ReadSource&) {
  if (!context.awake() || !context.blob().holds(kEnergy)) return std::nullopt;
  const bool unit_is_known = context.has_blob_field(kEnergy) || energy_unit_is_known(context.chip());
  if (!unit_is_known || read_energy(context, 0).status != ReadStatus::ok) return std::nullopt;
  return 0;
}

Sample read_energy(AmdContext& context, int) noexcept {
  const GpuMetricsBlob& blob = context.blob();
  if (blob.status() != ReadStatus::ok) return Sample::miss(blob.status());
  const std::uint64_t units = blob.raw(kEnergy).value_or(0);
  if (units == 0) return Sample::miss(ReadStatus::unsupported);
  return Sample::of(to_base(static_cast<double>(units), BlobUnit::energy_units));
}

Handle bind_throttle(AmdContext& context, const ReadSource& source) {
  if (context.has_blob_field(kIndependentThrottle)) {
    return context.keep(AmdContext::Flags{kIndependentThrottle, source.argument});
  }
  const std::uint64_t mask = chip_throttle_mask(context.chip(), source.argument);
  if (mask == 0 || !context.has_blob_field(kChipThrottle)) return std::nullopt;
  return context.keep(AmdContext::Flags{kChipThrottle, mask});
}

Sample read_throttle(AmdContext& context, int handle) noexcept {
  const AmdContext::Flags flags = context.flags(handle);
  return context.blob().any_of(flags.field, flags.mask);
}

Handle bind_residency(AmdContext& context, const ReadSource& source) {
  const ThrottleResidency::Fields fields = fields_of(source.name);
  const auto has = [&](const std::optional<std::size_t>& field) {
    return !field || context.has_blob_field(*field);
  };
  if (!context.awake() || !std::all_of(fields.begin(), fields.end(), has)) return std::nullopt;
  return context.keep(ThrottleResidency(fields));
}

Sample read_residency(AmdContext& context, int handle) noexcept {
  const GpuMetricsBlob& blob = context.blob();
  if (blob.status() != ReadStatus::ok) return Sample::miss(blob.status());
  ThrottleResidency& residency = context.residency(handle);
  if (context.is_after_gap()) residency.restart();
  return residency.advance(blob);
}

}  // namespace gpumeter::amd::readers
