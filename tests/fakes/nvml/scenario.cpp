#include "tests/fakes/nvml/scenario.hpp"

#include <algorithm>
#include <array>

namespace gpumeter::fake_nvml {
namespace {

/// Returns `PREFIX.NAME`, otherwise `PREFIX.all`.
const ValueOverTime* by_function(const Facts& facts, std::string_view prefix, std::string_view function) {
  const ValueOverTime* named = facts.find(std::string(prefix).append(function));
  return named != nullptr ? named : facts.find(std::string(prefix).append("all"));
}

}  // namespace

const ValueOverTime* Facts::find(std::string_view path) const {
  const auto found = values.find(path);
  return found == values.end() ? nullptr : &found->second;
}

Value Facts::at(std::string_view path, double now) const {
  const ValueOverTime* value = find(path);
  return value == nullptr ? Value{.error = nvml::kNotSupported} : value->at(now);
}

std::size_t Facts::count(std::string_view path) const {
  const auto found = counts.find(path);
  return found == counts.end() ? 0 : found->second;
}

unsigned Facts::error(std::string_view function, double now) const {
  const ValueOverTime* value = by_function(*this, "errors.", function);
  return value == nullptr ? nvml::kSuccess : value->at(now).error;
}

double Facts::latency_ms(std::string_view function, double now) const {
  const ValueOverTime* value = by_function(*this, "latency.", function);
  return value == nullptr ? 0 : static_cast<double>(value->at(now).number);
}

std::optional<Window> Facts::hang(std::string_view function, double now) const {
  for (const auto& hang : hangs) {
    if ((hang.function == "all" || hang.function == function) && hang.when.holds(now)) return hang.when;
  }
  return std::nullopt;
}

bool Device::is_lost(double now) const {
  return std::any_of(lost.begin(), lost.end(), [&](const Window& window) { return window.holds(now); });
}

std::size_t Device::returns(double now) const {
  return static_cast<std::size_t>(
      std::count_if(lost.begin(), lost.end(), [&](const Window& window) { return window.until <= now; }));
}

std::optional<double> EventSource::time_of(std::size_t nth) const {
  const double time = rate > 0 ? when.from + static_cast<double>(nth) / rate : when.from;
  if (rate > 0 ? time >= when.until : nth > 0) return std::nullopt;
  return time;
}

unsigned Scenario::layout(std::string_view name, unsigned otherwise) const {
  const Value value = system.at(std::string("layouts.").append(name), 0);
  return value.is_number ? static_cast<unsigned>(value.number) : otherwise;
}

}  // namespace gpumeter::fake_nvml
