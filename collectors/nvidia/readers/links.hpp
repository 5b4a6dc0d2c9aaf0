#pragma once

#include "collectors/nvidia/readers/basic.hpp"

/// NVLink: the sums over all links, each link by itself if the configuration enables it, and the fabric.
namespace gpumeter::nvidia {

namespace readers {

Reader bind_links_up(NvidiaContext& context, const ReadSource& source);
Reader bind_all_link_errors(NvidiaContext& context, const ReadSource& source);
Reader bind_link_state(NvidiaContext& context, const ReadSource& source);
Reader bind_link_errors(NvidiaContext& context, const ReadSource& source);
Reader bind_worst_ber(NvidiaContext& context, const ReadSource& source);
Reader bind_ber(NvidiaContext& context, const ReadSource& source);
Reader bind_c2c_up(NvidiaContext& context, const ReadSource& source);
Reader bind_fabric_state(NvidiaContext& context, const ReadSource& source);
Reader bind_fabric_health(NvidiaContext& context, const ReadSource& source);

}  // namespace readers

/// The fabric's health as nvmlGpuFabricInfo reports it; newer drivers compute the summary themselves.
enum class FabricHealth : std::uint8_t { healthy = 1, unhealthy, limited_capacity };

/// Computes the summary for drivers before 580, from the bits of each condition in `mask`. Any trouble is
/// unhealthy, and lower bandwidth by itself is limited capacity. nullopt: the mask is empty.
std::optional<FabricHealth> summed_up(unsigned mask) noexcept;

// Read link by link, since the driver has no sums. Link 0 returns NOT_SUPPORTED if there is no NVLink; a link
// beyond the last returns INVALID_ARGUMENT.

/// Number of links that are up.
constexpr NvidiaSource links_up(std::string_view name) noexcept { return {readers::bind_links_up, {name}}; }

/// Errors of all links together; `counter` is a value of nvmlNvLinkErrorCounter_t.
constexpr NvidiaSource all_link_errors(std::string_view name, unsigned counter) noexcept {
  return {readers::bind_all_link_errors, {name, counter}};
}

/// The bit error ratio in a field value: a mantissa in bits 8 to 11, a negative power of ten in bits 0 to 7
/// (nvml.h at NVML_FI_DEV_NVLINK_COUNT_SYMBOL_BER).
double bit_error_ratio(double field) noexcept;

/// The highest bit error ratio of all NVLinks.
constexpr NvidiaSource worst_ber_field(std::string_view name, unsigned id) noexcept {
  return {readers::bind_worst_ber, {name, readers::packed({id, Tier::slow, 0})}};
}

/// Number of links to the CPU (NVLink-C2C) that are active, of those that NVML_FI_DEV_C2C_LINK_COUNT counts.
constexpr NvidiaSource c2c_up_fields(std::string_view name, unsigned id) noexcept {
  return {readers::bind_c2c_up, {name, readers::packed({id, Tier::slow, 0})}};
}

// Sources of one link, with `links: each`.

constexpr NvidiaSource link_state(std::string_view name, unsigned link) noexcept {
  return {readers::bind_link_state, {name, link}};
}
constexpr NvidiaSource link_errors(std::string_view name, unsigned link, unsigned counter) noexcept {
  return {readers::bind_link_errors, {name, link | std::uint64_t{counter} << 32}};
}
constexpr NvidiaSource link_field(std::string_view name, unsigned link, unsigned id, Tier tier) noexcept {
  return field(name, id, tier, link);
}

constexpr NvidiaSource link_ber_field(std::string_view name, unsigned link, unsigned id) noexcept {
  return {readers::bind_ber, {name, readers::packed({id, Tier::slow, link})}};
}

/// State of a fabric registration that completed without success; outside the values of nvmlGpuFabricState_t.
inline constexpr unsigned kFabricFailed = 0x100;

/// 1 while the state, or the health summary, equals `holds`.
constexpr NvidiaSource fabric_state(std::string_view name, unsigned holds) noexcept {
  return {readers::bind_fabric_state, {name, holds}};
}
constexpr NvidiaSource fabric_health(std::string_view name, FabricHealth holds) noexcept {
  return {readers::bind_fabric_health, {name, static_cast<std::uint64_t>(holds)}};
}

}  // namespace gpumeter::nvidia
