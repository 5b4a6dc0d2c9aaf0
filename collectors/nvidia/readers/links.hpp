#pragma once

#include "collectors/nvidia/readers/basic.hpp"

/// NVLink: the sums over all links, each link by itself where the config asks for it, and the fabric.
namespace gpumeter::nvidia {

namespace readers {

Sample read_links_up(NvidiaContext& context, int handle) noexcept;
Sample read_all_link_errors(NvidiaContext& context, int handle) noexcept;
Handle bind_all_link_fields(NvidiaContext& context, const ReadSource& source);
Sample read_all_link_fields(NvidiaContext& context, int handle) noexcept;
Sample read_link_state(NvidiaContext& context, int handle) noexcept;
Sample read_link_errors(NvidiaContext& context, int handle) noexcept;
Sample read_fabric_state(NvidiaContext& context, int handle) noexcept;
Sample read_fabric_health(NvidiaContext& context, int handle) noexcept;

}  // namespace readers

/// What nvmlGpuFabricInfo says of its health; newer drivers sum it up themselves.
enum class FabricHealth : std::uint8_t { healthy = 1, unhealthy, limited_capacity };

/// The sum that a driver before 580 leaves to its reader, of the two bits and more in `mask` of each matter:
/// any trouble is unhealthy, and lower bandwidth by itself is limited capacity. nullopt: it says nothing.
std::optional<FabricHealth> summed_up(unsigned mask) noexcept;

// Link by link, as there are no sums of these. Link 0 answers NOT_SUPPORTED where there is no NVLink; one
// that is beyond the last, INVALID_ARGUMENT.

/// How many links are up.
constexpr NvidiaReader links_up(std::string_view name) noexcept {
  return {readers::bind_probed<readers::read_links_up>, readers::read_links_up, {name}};
}
/// Errors of all links together; `counter` is of nvmlNvLinkErrorCounter_t.
constexpr NvidiaReader all_link_errors(std::string_view name, unsigned counter) noexcept {
  return {
      readers::bind_probed<readers::read_all_link_errors>, readers::read_all_link_errors, {name, counter}};
}

/// A field value of each link, added up.
constexpr NvidiaReader all_link_fields(std::string_view name, unsigned field, Tier tier) noexcept {
  return {readers::bind_all_link_fields,
          readers::read_all_link_fields,
          {name, readers::packed({field, tier, 0})}};
}

// Of one link, where `links: each` is configured.

constexpr NvidiaReader link_state(std::string_view name, unsigned link) noexcept {
  return {readers::bind_probed<readers::read_link_state>, readers::read_link_state, {name, link}};
}
constexpr NvidiaReader link_errors(std::string_view name, unsigned link, unsigned counter) noexcept {
  return {readers::bind_probed<readers::read_link_errors>,
          readers::read_link_errors,
          {name, link | std::uint64_t{counter} << 32}};
}
constexpr NvidiaReader link_field(std::string_view name, unsigned link, unsigned field, Tier tier) noexcept {
  return {readers::bind_field, readers::read_field, {name, readers::packed({field, tier, link})}};
}

/// State of a fabric registration that is completed without success; beyond those of nvmlGpuFabricState_t.
inline constexpr unsigned kFabricFailed = 0x100;

/// 1 while the state, or the sum of the health, is `holds`.
constexpr NvidiaReader fabric_state(std::string_view name, unsigned holds) noexcept {
  return {readers::bind_probed<readers::read_fabric_state>, readers::read_fabric_state, {name, holds}};
}
constexpr NvidiaReader fabric_health(std::string_view name, FabricHealth holds) noexcept {
  return {readers::bind_probed<readers::read_fabric_health>,
          readers::read_fabric_health,
          {name, static_cast<std::uint64_t>(holds)}};
}

}  // namespace gpumeter::nvidia
