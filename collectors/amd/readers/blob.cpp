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

/// The fields of "gpu_metrics.a | gpu_metrics.b"; all names in the table are known.
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

/// 1 while any throttler of the mask is active.
template <Throttlers of>
Reader any_of(AmdContext& context, std::uint64_t mask) {
  return [&context, mask] { return context.throttlers(of).any_of(mask); };
}

Sample energy(AmdContext& context) noexcept {
  const GpuMetricsBlob& blob = context.blob();
  if (blob.status() != ReadStatus::ok) return Sample::miss(blob.status());
  const std::uint64_t units = blob.raw(kEnergy).value_or(0);
  if (units == 0) return Sample::miss(ReadStatus::unsupported);
  return Sample::of(to_base(static_cast<double>(units), BlobUnit::energy_units));
}

}  // namespace

Reader bind_blob(AmdContext& context, const ReadSource& source) {
  const BlobElement wanted = BlobElement::of(source.argument);
  const std::size_t index = wanted.element == 0 ? 0 : wanted.element - 1;
  if (!context.has_blob_field(wanted.field, index)) return {};
  if (wanted.element == 0) return [&context, wanted] { return context.blob().value(wanted.field); };
  return [&context, wanted, index] { return context.blob().value(wanted.field, index); };
}

Reader bind_counter(AmdContext& context, const ReadSource& source) {
  if (!context.awake() || !context.has_blob_field(source.argument)) return {};
  return [&context, field = source.argument] { return context.blob().sum(field); };
}

Reader bind_highest(AmdContext& context, const ReadSource& source) {
  if (!context.has_blob_field(source.argument)) return {};
  return [&context, field = source.argument] { return context.blob().highest(field); };
}

Reader bind_part_highest(AmdContext& context, const ReadSource& source) {
  if (!context.has_blob_field(source.argument)) return {};
  return [&context, field = source.argument, part = context.partition(),
          parts = context.partitions().size()] { return context.blob().highest(field, part, parts); };
}

Reader bind_either(AmdContext& context, const ReadSource& source) {
  const BlobElement both = BlobElement::of(source.argument);
  if (!context.has_blob_field(both.field) && !context.has_blob_field(both.element)) return {};
  return [&context, both] {
    const Sample first = context.blob().value(both.field);
    return first.status == ReadStatus::unsupported ? context.blob().value(both.element) : first;
  };
}

Reader bind_link_states(AmdContext& context, const ReadSource& source) {
  if (!context.has_blob_field(kLinkStatus)) return {};
  return [&context, states = source.argument] { return context.blob().count_of(kLinkStatus, states); };
}

Reader bind_dram(AmdContext& context, const ReadSource&) {
  if (!context.has_blob_field(kMemoryActivity) || !context.has_blob_field(kPowerSince1_4)) return {};
  return [&context] { return context.blob().value(kMemoryActivity); };
}

// A chip without an accumulator has 0 here, as has the second die of an MI250. A sleeping card cannot be
// read.
Reader bind_energy(AmdContext& context, const ReadSource&) {
  if (!context.awake() || !context.blob().holds(kEnergy)) return {};
  const bool is_unit_known = context.has_blob_field(kEnergy) || energy_unit_is_known(context.chip());
  if (!is_unit_known || energy(context).status != ReadStatus::ok) return {};
  return [&context] { return energy(context); };
}

Reader bind_throttle(AmdContext& context, const ReadSource& source) {
  if (context.has_blob_field(kIndependentThrottle))
    return any_of<Throttlers::independent>(context, source.argument);
  const std::uint64_t mask = chip_throttle_mask(context.chip(), source.argument);
  const bool is_known = mask != 0 && context.has_blob_field(kChipThrottle);
  return is_known ? any_of<Throttlers::of_chip>(context, mask) : Reader();
}

Reader bind_residency(AmdContext& context, const ReadSource& source) {
  const ThrottleResidency::Fields fields = fields_of(source.name);
  const auto has = [&](const std::optional<std::size_t>& field) {
    return !field || context.has_blob_field(*field);
  };
  if (!context.awake() || !std::all_of(fields.begin(), fields.end(), has)) return {};
  return CountingReader(ThrottleResidency(fields), [&context](Settled<ThrottleResidency>& settled) {
    const GpuMetricsBlob& blob = context.blob();
    if (blob.status() != ReadStatus::ok) return Sample::miss(blob.status());
    ThrottleResidency& residency = settled.current();
    if (context.is_after_gap()) residency.restart();
    return residency.advance(blob);
  });
}

}  // namespace gpumeter::amd::readers
