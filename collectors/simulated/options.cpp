#include "collectors/simulated/options.hpp"

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>

#include "collectors/simulated/duration.hpp"

namespace gpumeter::simulated {
namespace {

using Options = std::map<std::string, std::vector<std::string>>;

template <class Number>
std::optional<Number> parse_number(std::string_view text) noexcept {
  Number number{};
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && rest == end ? std::optional(number) : std::nullopt;
}

std::string_view fallback_of(std::string_view key) {
  for (const CollectorOption& option : kOptions) {
    if (option.name == key) return option.fallback;
  }
  return {};
}

std::string_view text_of(const Options& options, const std::string& key) {
  const auto found = options.find(key);
  return found == options.end() || found->second.empty() ? fallback_of(key) : found->second.front();
}

Error refused(const std::string& key, std::string_view text, const std::string& want) {
  return Error("collectors.simulated." + key + ": must be " + want + ", not \"" + std::string(text) + '"');
}

// NaN is in no range.
template <class Number>
Result<Number> number_in(const Options& options, const std::string& key, Number least, Number most,
                         const std::string& want) {
  const std::string_view text = text_of(options, key);
  const std::optional<Number> number = parse_number<Number>(text);
  if (number && *number >= least && *number <= most) return *number;
  return refused(key, text, want);
}

Result<Nanoseconds> period_of(const Options& options) {
  // Below a millisecond a wave is nothing that a meter of whole seconds could be tried with.
  constexpr Nanoseconds kShortest = std::chrono::milliseconds(1);
  const std::string_view text = text_of(options, "period");
  const std::optional<Nanoseconds> period = parse_duration(text);
  if (period && *period >= kShortest) return *period;
  return refused("period", text, "1ms or more");
}

Result<Workload> workload_of(const Options& options) {
  constexpr double kMostWatts = 1e6;
  const auto period = period_of(options);
  if (!period) return period.error();
  const auto duty = number_in(options, "duty", 0.0, 1.0, "a number from 0 to 1");
  if (!duty) return duty.error();
  const auto idle = number_in(options, "idle_power", 0.0, kMostWatts, "watts from 0 to 1000000");
  if (!idle) return idle.error();
  const auto busy = number_in(options, "busy_power", *idle, kMostWatts, "watts from idle_power to 1000000");
  if (!busy) return busy.error();
  return Workload{*period, *duty, *idle, *busy};
}

Result<std::vector<Event>> events_of(const Options& options, int device_count) {
  std::vector<Event> events;
  const auto found = options.find("events");
  if (found == options.end()) return events;
  for (const std::string& text : found->second) {
    const Result<Event> event = parse_event(text, device_count);
    if (!event) return event.error().with("collectors.simulated.events");
    events.push_back(*event);
  }
  return events;
}

Result<std::vector<ProcessOption>> processes_of(const Options& options, int device_count) {
  std::vector<ProcessOption> processes;
  const auto found = options.find("processes");
  if (found == options.end()) return processes;
  for (const std::string& text : found->second) {
    Result<ProcessOption> process = parse_process_option(text, device_count);
    if (!process) return process.error().with("collectors.simulated.processes");
    processes.push_back(*std::move(process));
  }
  return processes;
}

}  // namespace

Result<Settings> parse_settings(const Options& options) {
  const auto devices = number_in(options, "devices", 1, static_cast<int>(kMostDevices),
                                 "a whole number from 1 to " + std::to_string(kMostDevices));
  if (!devices) return devices.error();
  const auto seed = number_in(options, "seed", std::uint64_t{0}, UINT64_MAX, "a whole number, 0 or more");
  if (!seed) return seed.error();
  const auto workload = workload_of(options);
  if (!workload) return workload.error();
  auto events = events_of(options, *devices);
  if (!events) return events.error();
  auto processes = processes_of(options, *devices);
  if (!processes) return processes.error();
  return Settings{*devices, *seed, *workload, *std::move(events), *std::move(processes)};
}

}  // namespace gpumeter::simulated
