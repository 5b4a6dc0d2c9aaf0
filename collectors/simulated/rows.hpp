#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "collectors/simulated/context.hpp"
#include "collectors/table/compose.hpp"
#include "collectors/table/row.hpp"

/// What the tables of activity_rows.hpp and health_rows.hpp are written with.
namespace gpumeter::simulated {

using Row = MetricRow<SimulatedContext>;

inline std::optional<int> bind_argument(SimulatedContext&, const ReadSource& source) {
  return static_cast<int>(source.argument);
}

/// Reads a quantity of the model: `Quantity` is a function of the model, the time and perhaps the argument.
template <auto Quantity>
constexpr Reader<SimulatedContext> reads(std::string_view name, std::uint64_t argument = 0) {
  constexpr auto read = [](SimulatedContext& context, int handle) noexcept {
    if constexpr (std::invocable<decltype(Quantity), const Model&, Nanoseconds, int>) {
      return Sample::of(std::invoke(Quantity, context.model(), context.time(), handle));
    } else {
      return Sample::of(std::invoke(Quantity, context.model(), context.time()));
    }
  };
  return {bind_argument, read, {name, argument}};
}

/// A fact of the device: a small number that the row's scale brings to size.
constexpr Reader<SimulatedContext> fixed(int value) {
  constexpr auto read = [](SimulatedContext&, int handle) noexcept { return Sample::of(handle); };
  return {bind_argument, read, {"fixed", static_cast<std::uint64_t>(value)}};
}

/// A family that is 1 for the state that holds and 0 for the others.
template <std::size_t N>
constexpr std::array<Row, N> one_of(const MetricDescriptor& family, std::string_view label,
                                    const std::string_view (&states)[N], std::string_view holds) {
  return each(states, [&](std::string_view state) {
    return Row{&family, {label, state}, fixed(state == holds ? 1 : 0), 1, Tier::slow};
  });
}

}  // namespace gpumeter::simulated
