#pragma once

#include "collectors/nvidia/readers/basic.hpp"

/// NVLink: the sums over all links, each link by itself where the config asks for it, and the fabric.
namespace gpumeter::nvidia {

namespace readers {

Reader bind_links_up(NvidiaContext& context, const ReadSource& source);
Reader bind_all_link_errors(NvidiaContext& context, const ReadSource& source);
Reader bind_link_state(NvidiaContext& context, const ReadSource& source);
Reader bind_link_errors(NvidiaContext& context, const ReadSource& source);
Reader bind_fabric_state(NvidiaContext& context, const ReadSource& source);
Reader bind_fabric_health(NvidiaContext& context, const ReadSource& source);

}  // namespace readers

/// The fabric's health as nvmlGpuFabricInfo reports it; newer drivers sum it up themselves.
enum class FabricHealth : std::uint8_t { healthy = 1, unhealthy, limited_capacity };

/// The sum that a driver before 580 leaves to its reader, of the two bits and more in `mask` of each matter:
/// any trouble is unhealthy, and lower bandwidth by itself is limited capacity. nullopt: the mask is empty.
std::optional<FabricHealth> summed_up(unsigned mask) noexcept;

// Link by link, as there are no sums of these. Link 0 answers NOT_SUPPORTED if there is no NVLink; one that
// is beyond the last, INVALID_ARGUMENT.

/// How many links are up.
constexpr NvidiaSource links_up(std::string_view name) noexcept { return {readers::bind_links_up, {name}}; }

/// Errors of all links together; `counter` is of nvmlNvLinkErrorCounter_t.
constexpr NvidiaSource all_link_errors(std::string_view name, unsigned counter) noexcept {
  return {readers::bind_all_link_errors, {name, counter}};
}

// Of one link, where `links: each` is configured.

constexpr NvidiaSource link_state(std::string_view name, unsigned link) noexcept {
  return {readers::bind_link_state, {name, link}};
}
constexpr NvidiaSource link_errors(std::string_view name, unsigned link, unsigned counter) noexcept {
  return {readers::bind_link_errors, {name, link | std::uint64_t{counter} << 32}};
}
constexpr NvidiaSource link_field(std::string_view name, unsigned link, unsigned id, Tier tier) noexcept {
  return field(name, id, tier, link);
}

/// State of a fabric registration that is completed without success; beyond those of nvmlGpuFabricState_t.
inline constexpr unsigned kFabricFailed = 0x100;

/// 1 while the state, or the sum of the health, is `holds`.
constexpr NvidiaSource fabric_state(std::string_view name, unsigned holds) noexcept {
  return {readers::bind_fabric_state, {name, holds}};
}
constexpr NvidiaSource fabric_health(std::string_view name, FabricHealth holds) noexcept {
  return {readers::bind_fabric_health, {name, static_cast<std::uint64_t>(holds)}};
}

}  // namespace gpumeter::nvidia
