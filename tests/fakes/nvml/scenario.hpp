#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/fakes/nvml/value_over_time.hpp"

namespace gpumeter::fake_nvml {

inline constexpr double kForever = std::numeric_limits<double>::infinity();

struct Window {
  double from = 0, until = kForever;
  bool holds(double now) const { return now >= from && now < until; }
};

/// Calls of this function (or "all") that begin in the window return at its end.
struct Hang {
  std::string function = "all";
  Window when;
};

/// The values of one part of the machine, by the path of their keys: "power.draw", "fans.0.percent". A list's
/// length is in `counts`. Field and GPM names are ids here: "fields.82".
struct Facts {
  std::map<std::string, ValueOverTime, std::less<>> values;
  std::map<std::string, std::size_t, std::less<>> counts;
  std::vector<Hang> hangs;

  const ValueOverTime* find(std::string_view path) const;
  /// Returns NOT_SUPPORTED if the scenario has no value.
  Value at(std::string_view path, double now) const;
  std::size_t count(std::string_view path) const;
  /// The scripted error of a call now: `errors: {NAME or all: ...}`.
  unsigned error(std::string_view function, double now) const;
  double latency_ms(std::string_view function, double now) const;
  std::optional<Window> hang(std::string_view function, double now) const;
};

struct Device {
  Facts facts;
  std::vector<Window> lost, reset_required;

  bool is_lost(double now) const;
  /// Number of returns so far. A handle from before a loss stays invalid.
  std::size_t returns(double now) const;
};

/// One event, or with `rate` one event every 1/rate seconds.
struct EventSource {
  Window when;
  double rate = 0;
  std::size_t device = 0;
  unsigned long long type = 0, data = 0;
  unsigned gpu_instance = nvml::kNoInstance, compute_instance = nvml::kNoInstance;

  /// The type of operational events, which are no bit of NVML's, and what such an event has.
  static constexpr unsigned long long kOperational = 1ULL << 63;
  std::string module;
  unsigned code = 0, severity = 0, attributes = 0, group_attributes = 0, log_level = 0;
  std::vector<unsigned> contexts;  ///< an XID each; 0: a context that is none

  std::optional<double> time_of(std::size_t nth) const;
};

struct Scenario {
  Facts system;
  std::vector<Device> devices;
  std::vector<EventSource> events;

  unsigned layout(std::string_view name, unsigned otherwise) const;
};

/// Throws std::exception with a text that names the wrong key.
Scenario load_scenario(const std::string& path);

}  // namespace gpumeter::fake_nvml
