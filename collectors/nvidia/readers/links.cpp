#include <algorithm>
#include <utility>
#include <vector>

#include "collectors/nvidia/readers.hpp"

namespace gpumeter::nvidia {

using namespace readers;

namespace {

Sample errors_of(NvmlCaller& gpu, unsigned link, unsigned counter) noexcept {
  std::uint64_t count = 0;
  const unsigned result = gpu.call<&F::nvmlDeviceGetNvLinkErrorCounter>(link, counter, &count);
  return sample_of(result, static_cast<double>(count));
}

/// Sums over the links up to the last one. Without any link, the result is that of the first.
template <class Of>
Sample summed(Of of) noexcept {
  Sample sum = of(0);
  for (unsigned link = 1; sum.status == ReadStatus::ok && link < nvml::kMostLinks; ++link) {
    const Sample one = of(link);
    if (is_lacking(one.status)) break;
    sum = one.status == ReadStatus::ok ? Sample::of(sum.value + one.value) : one;
  }
  return sum;
}

/// Combines the readings of all links. A link that has no value now is left out.
template <class Combine>
Sample over_links(const std::vector<BatchedField>& links, Combine combine) noexcept {
  Sample result = Sample::miss(ReadStatus::unsupported);
  for (const BatchedField& link : links) {
    const Sample one = link();
    if (is_lacking(one.status)) continue;
    if (one.status != ReadStatus::ok) return one;
    result = Sample::of(combine(result.value, one.value));
  }
  return result;
}

/// Reads the fabric's info: 1 if `holds` returns true for it, 0 if false; nullopt means unsupported.
template <class Holds>
Reader bind_fabric(NvidiaContext& context, const ReadSource& source, Holds holds) {
  auto& answer = context.gpu().answer<&F::nvmlDeviceGetGpuFabricInfoV>();
  return probed(context, source, [&context, &answer, holds] {
    const nvml::FabricInfoV3& info = answer.ask();
    const ReadStatus status = status_of(answer.result());
    if (status != ReadStatus::ok) return Sample::miss(status);
    context.note_fabric(info);
    constexpr unsigned kNone = 0;  // NVML_GPU_FABRIC_STATE_NOT_SUPPORTED
    const std::optional<bool> state = info.state == kNone ? std::nullopt : holds(info);
    return state ? Sample::of(*state ? 1 : 0) : Sample::miss(ReadStatus::unsupported);
  });
}

/// nvmlGpuFabricState_t, with a separate state for a registration that ended with an error: "status must be
/// checked only if Probe state returns complete" (nvml.h).
unsigned fabric_state_of(const nvml::FabricInfoV3& info) noexcept {
  return info.state == nvml::kFabricCompleted && info.status != nvml::kSuccess ? kFabricFailed : info.state;
}

std::optional<FabricHealth> fabric_health_of(const nvml::FabricInfoV3& info) noexcept {
  if (info.health_summary == 0) return summed_up(info.health_mask);
  return static_cast<FabricHealth>(info.health_summary);
}

}  // namespace

Reader links_up(NvidiaContext& context, const ReadSource& source) {
  return probed(context, source, [&context, &gpu = context.gpu().caller] { return context.links().up(gpu); });
}

Reader links_speed(NvidiaContext& context, const ReadSource& source) {
  return probed(context, source,
                [&context, &gpu = context.gpu().caller] { return context.links().speed(gpu); });
}

Reader all_link_errors(NvidiaContext& context, const ReadSource& source) {
  return probed(context, source,
                [&gpu = context.gpu().caller, counter = static_cast<unsigned>(source.argument)] {
                  return summed([&](unsigned link) { return errors_of(gpu, link, counter); });
                });
}

// The call knows two states only; the field also those of a link that sleeps or has no traffic.
Reader readers::bind_link_state(NvidiaContext& context, const ReadSource& source) {
  return probed(context, source, [&context, &gpu = context.gpu().caller, link = source.argument >> 32] {
    return context.links().is_up(gpu, link);
  });
}

Reader readers::bind_link_errors(NvidiaContext& context, const ReadSource& source) {
  return probed(context, source, [&gpu = context.gpu().caller, argument = source.argument] {
    return errors_of(gpu, static_cast<unsigned>(argument >> 32), static_cast<unsigned>(argument));
  });
}

Reader readers::bind_worst_ber(NvidiaContext& context, const ReadSource& source) {
  const FieldArgument wanted = unpacked(source.argument);
  auto [links, first] = fields_of_links(context, wanted, nvml::kMostLinks);
  if (links.empty()) return absent_for_now(context, source, first, field_probe(context, wanted));
  return [links = std::move(links)] {
    return over_links(links,
                      [](double worst, double field) { return std::max(worst, bit_error_ratio(field)); });
  };
}

Reader readers::bind_ber(NvidiaContext& context, const ReadSource& source) {
  const FieldArgument wanted = unpacked(source.argument);
  const Sample first = field_probe(context, wanted)();
  if (!is_admitted(context, source, first.status, field_probe(context, wanted))) return {};
  return [field = BatchedField(context, wanted)] {
    const Sample ratio = field();
    return ratio.status == ReadStatus::ok ? Sample::of(bit_error_ratio(ratio.value)) : ratio;
  };
}

Reader readers::bind_c2c_up(NvidiaContext& context, const ReadSource& source) {
  constexpr unsigned kCount = 170;  // NVML_FI_DEV_C2C_LINK_COUNT
  const FieldArgument wanted = unpacked(source.argument);
  const Sample count = read_field(context.gpu().caller, kCount, 0).sample;
  if (count.status != ReadStatus::ok || count.value < 1) return {};
  const auto most = static_cast<unsigned>(std::min<double>(count.value, nvml::kMostC2cLinks));
  auto [links, first] = fields_of_links(context, wanted, most);
  if (links.empty()) return absent_for_now(context, source, first, field_probe(context, wanted));
  return [links = std::move(links)] {
    return over_links(links, [](double up, double state) { return up + (state == 1 ? 1 : 0); });
  };
}

Reader fabric_state(NvidiaContext& context, const ReadSource& source) {
  return bind_fabric(context, source,
                     [wanted = source.argument](const nvml::FabricInfoV3& info) -> std::optional<bool> {
                       return fabric_state_of(info) == wanted;
                     });
}

Reader fabric_health(NvidiaContext& context, const ReadSource& source) {
  const auto wanted = static_cast<FabricHealth>(source.argument);
  return bind_fabric(context, source, [wanted](const nvml::FabricInfoV3& info) -> std::optional<bool> {
    const std::optional<FabricHealth> health = fabric_health_of(info);
    return health ? std::optional(*health == wanted) : std::nullopt;
  });
}

Reader fabric_condition(NvidiaContext& context, const ReadSource& source) {
  return bind_fabric(context, source,
                     [&of = kFabricConditions[source.argument]](const nvml::FabricInfoV3& info) {
                       const unsigned said = info.health_mask >> of.shift & of.bits;
                       return said == 0 ? std::nullopt : std::optional(said == of.value);
                     });
}

// The header gives the two-bit masks a width of 3, which is the mask itself, as is 15 for the configuration.
// A node without a partition is not assigned yet, which is no trouble.
std::optional<FabricHealth> summed_up(unsigned mask) noexcept {
  constexpr unsigned kTwoBits = 3;
  constexpr unsigned kTrue = 1;
  constexpr unsigned kNone = 1, kNoPartition = 4;
  const unsigned bandwidth = mask & kTwoBits;
  const unsigned route_recovery = mask >> 2 & kTwoBits;
  const unsigned route_unhealthy = mask >> 4 & kTwoBits;
  const unsigned access_timeout = mask >> 6 & kTwoBits;
  const unsigned configuration = mask >> 8 & 15;
  if (mask == 0) return std::nullopt;
  const bool is_wrong = configuration > kNone && configuration != kNoPartition;
  if (route_recovery == kTrue || route_unhealthy == kTrue || access_timeout == kTrue || is_wrong)
    return FabricHealth::unhealthy;
  return bandwidth == kTrue ? FabricHealth::limited_capacity : FabricHealth::healthy;
}

}  // namespace gpumeter::nvidia
