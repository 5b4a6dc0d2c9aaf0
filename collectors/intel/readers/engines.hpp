#pragma once

#include <cstddef>
#include <string_view>

#include "collectors/intel/engine_times.hpp"
#include "collectors/intel/readers/basic.hpp"

/// Readers of the engines' busy time, from the events of the driver or from the clients in /proc.
namespace gpumeter::intel {

namespace readers {

Reader bind_events_busy(IntelContext& context, const ReadSource& source);
Reader bind_events_share(IntelContext& context, const ReadSource& source);
Reader bind_clients_busy(IntelContext& context, const ReadSource& source);
Reader bind_clients_share(IntelContext& context, const ReadSource& source);

}  // namespace readers

/// Seconds in which an engine was busy, and the share of the time since the last reading. `place`: see
/// seconds_of().
constexpr IntelSource events_busy(std::size_t place) noexcept {
  return {readers::bind_events_busy, {"perf_event_open *-busy, engine-active-ticks", place}};
}
constexpr IntelSource events_share(std::size_t place) noexcept {
  return {readers::bind_events_share, {"perf_event_open *-busy, engine-active-ticks", place}};
}
constexpr IntelSource clients_busy(std::size_t place) noexcept {
  return {readers::bind_clients_busy, {"/proc/PID/fdinfo drm-engine-*, drm-cycles-*", place}};
}
constexpr IntelSource clients_share(std::size_t place) noexcept {
  return {readers::bind_clients_share, {"/proc/PID/fdinfo drm-engine-*, drm-cycles-*", place}};
}

}  // namespace gpumeter::intel
