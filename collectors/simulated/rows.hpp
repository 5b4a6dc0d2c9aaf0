#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include "collectors/simulated/context.hpp"
#include "collectors/table/row.hpp"

/// Helpers for the tables in activity_rows.hpp and health_rows.hpp.
namespace gpumeter::simulated {

using Row = MetricRow<SimulatedContext>;
using SimulatedSource = RowSource<SimulatedContext>;

/// Reads a value, unless an event makes every read fail.
template <class Value>
Reader bind_value(const SimulatedContext& context, Value value) {
  return [&context, value]() -> Sample {
    if (context.model().timeline().holds(Event::Kind::reads, context.time())) {
      return Sample::miss(ReadStatus::failed);
    }
    return Sample::of(value(context));
  };
}

template <auto Quantity>
Reader bind_quantity(SimulatedContext& context, const ReadSource& source) {
  if constexpr (std::invocable<decltype(Quantity), const Model&, Nanoseconds, int>) {
    return bind_value(context, [argument = static_cast<int>(source.argument)](const SimulatedContext& from) {
      return static_cast<double>(std::invoke(Quantity, from.model(), from.time(), argument));
    });
  } else {
    return bind_value(context, [](const SimulatedContext& from) {
      return static_cast<double>(std::invoke(Quantity, from.model(), from.time()));
    });
  }
}

/// Reads a quantity of the model. `Quantity` is a function of the model, the time and optionally the
/// argument.
template <auto Quantity>
constexpr SimulatedSource reads(std::string_view name, std::uint64_t argument = 0) {
  return {bind_quantity<Quantity>, {name, argument}};
}

inline Reader bind_fixed(SimulatedContext& context, const ReadSource& source) {
  return bind_value(context, [value = static_cast<int>(source.argument)](const SimulatedContext&) {
    return static_cast<double>(value);
  });
}

/// A constant of the device: a small number that the row's scale multiplies.
constexpr SimulatedSource fixed(int value) {
  return {bind_fixed, {"fixed", static_cast<std::uint64_t>(value)}};
}

/// A family whose value is 1 for the active state and 0 for the others.
template <std::size_t N>
constexpr std::array<Row, N> one_of(const MetricDescriptor& family, std::string_view label,
                                    const std::string_view (&states)[N], std::string_view holds) {
  return each(states, [&](std::string_view state) {
    return Row{&family, {label, state}, fixed(state == holds ? 1 : 0), 1, Tier::slow};
  });
}

}  // namespace gpumeter::simulated
