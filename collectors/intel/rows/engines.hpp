#pragma once

#include <array>
#include <cstddef>

#include "collectors/api/catalog.hpp"
#include "collectors/intel/readers/engines.hpp"

/// Rows of the engines' busy time. The events of the driver count all work; the clients in /proc are those
/// that may be read, and stand in for the events.
namespace gpumeter::intel {

// A share needs two readings, and a class a client that uses it.
inline constexpr Traits kShare{.min = 0, .max = 1, .forgets = true};
inline constexpr Traits kEventSeconds{.min = 0, .forgets = true};
inline constexpr Traits kClientSeconds{.min = 0, .forgets = true, .counted_by = "fdinfo"};

/// The classes that i915 and xe have.
inline constexpr EngineClass kEngines[] = {EngineClass::graphics, EngineClass::compute, EngineClass::copy,
                                           EngineClass::video, EngineClass::video_enhance};

constexpr LabelSet engine_label(EngineClass engine) noexcept {
  return {"engine", kEngineClassNames.of(engine)};
}

template <class Source>
constexpr auto engine_seconds(Source source, const Traits& traits) {
  return each(kEngines, [source, &traits](EngineClass engine) {
    return Row{&catalog::engine_busy_seconds,
               engine_label(engine),
               source(static_cast<std::size_t>(engine)),
               1,
               Tier::fast,
               {},
               traits};
  });
}

template <class Source>
constexpr auto engine_shares(Source source) {
  return each(kEngines, [=](EngineClass engine) {
    return Row{&catalog::engine_utilization,
               engine_label(engine),
               source(static_cast<std::size_t>(engine)),
               1,
               Tier::fast,
               {},
               kShare};
  });
}

// clang-format off
inline constexpr auto kDeviceBusyRows = std::to_array<Row>({
    {&catalog::busy_seconds, {}, events_busy(kBusiest), 1, Tier::fast, {}, kEventSeconds},
    {&catalog::busy_seconds, {}, clients_busy(kBusiest), 1, Tier::fast, {}, kClientSeconds},
    {&catalog::utilization, {}, events_share(kBusiest), 1, Tier::fast, Derived{}.with(kUtilizationExtremes), kShare},
    {&catalog::utilization, {}, clients_share(kBusiest), 1, Tier::fast, Derived{}.with(kUtilizationExtremes), kShare},
});
// clang-format on

inline constexpr auto kEngineRows =
    joined(kDeviceBusyRows, engine_seconds(events_busy, kEventSeconds), engine_shares(events_share),
           engine_seconds(clients_busy, kClientSeconds), engine_shares(clients_share));

}  // namespace gpumeter::intel
