#include "collectors/jobs/benchmarks/results.hpp"

#include <algorithm>
#include <utility>

#include "base/text.hpp"
#include "collectors/jobs/wire/payload.hpp"

namespace gpumeter::jobs::benchmarks {
namespace {

using Role = ResultKind::Role;

bool is_named(const DeviceIdentity& device, const DeviceName& name) {
  switch (name.kind) {
    case DeviceName::Kind::uuid:
      return device.info.uuid == name.value;
    case DeviceName::Kind::pci:
      return device.info.pci_address == name.value;
    case DeviceName::Kind::index:
      break;
  }
  return parse_number<unsigned>(name.value) == device.index;
}

const ResultKind& kind_of(Role role) noexcept {
  return *std::ranges::find(result_kinds(), role, &ResultKind::role);
}

/// The last value of a label set counts.
void put(std::vector<Result>& results, Result result) {
  const auto same = [&](const Result& other) { return other.has_place_of(result); };
  const auto found = std::ranges::find_if(results, same);
  if (found == results.end()) {
    results.push_back(std::move(result));
  } else {
    found->value = result.value;
  }
}

void take(SuiteRun& run, Reading reading) {
  if (reading.kind->role == Role::timestamp) {
    run.timestamp = reading.value;
  } else if (reading.kind->role == Role::failed) {
    run.failed = reading.value != 0;
  } else {
    put(run.results, {reading.kind, std::move(reading.labels), reading.value});
  }
}

template <class Suites>
std::vector<const SuiteRun*> latest_first(const Suites& suites) {
  std::vector<const SuiteRun*> runs;
  for (const auto& [suite, run] : suites) runs.push_back(&run);
  std::ranges::stable_sort(runs, std::ranges::greater(), &SuiteRun::timestamp);
  return runs;
}

}  // namespace

void Results::receive(std::string_view payload, Devices devices, Nanoseconds unix_now, const Drop& drop) {
  ByDevice received;
  PayloadLines lines(payload);
  for (std::size_t count = 0; const auto line = lines.next(); ++count) {
    if (count >= kMaxLines) {
      drop(Refusal::too_many_lines);
      continue;
    }
    auto parsed = read(*line, unix_now);
    if (const auto* const refusal = std::get_if<Refusal>(&parsed)) {
      drop(*refusal);
      continue;
    }
    auto& reading = std::get<Reading>(parsed);
    const auto device = std::ranges::find_if(
        devices, [&](const DeviceIdentity& known) { return is_named(known, reading.device); });
    if (device == devices.end()) {
      drop(Refusal::device);
      continue;
    }
    Suites& suites = received[device->info.uuid];
    const auto [run, is_new] = suites.try_emplace(reading.suite, SuiteRun{to_seconds(unix_now), {}, {}});
    take(run->second, std::move(reading));
  }
  for (auto& [uuid, suites] : received) replace(uuid, suites, devices, drop);
}

void Results::replace(const std::string& uuid, Suites& runs, Devices devices, const Drop& drop) {
  if (!devices_.contains(uuid) && !make_room(devices)) return drop(Refusal::series_limit);
  ++version_;
  Suites& suites = devices_[uuid];
  for (const auto& [suite, run] : runs) suites.erase(suite);
  std::size_t used = 0;
  for (const auto& [suite, run] : suites) used += run.results.size();
  for (auto& [suite, run] : runs) {
    if (suites.size() >= kMostSuites) {
      drop(Refusal::series_limit);
      continue;
    }
    for (; run.results.size() > kMostResults - used; run.results.pop_back()) drop(Refusal::series_limit);
    used += run.results.size();
    suites.insert_or_assign(suite, std::move(run));
  }
}

bool Results::make_room(Devices devices) {
  if (devices_.size() < kMostDevices) return true;
  const auto is_unknown = [&](const auto& entry) {
    const auto same = [&](const DeviceIdentity& device) { return device.info.uuid == entry.first; };
    return std::ranges::none_of(devices, same);
  };
  const auto found = std::ranges::find_if(devices_, is_unknown);
  if (found == devices_.end()) return false;
  devices_.erase(found);
  return true;
}

std::vector<Result> Results::shown(const std::string& uuid) const {
  const auto device = devices_.find(uuid);
  if (device == devices_.end() || device->second.empty()) return {};
  std::vector<Result> shown;
  std::optional<bool> failed;
  const std::vector<const SuiteRun*> runs = latest_first(device->second);
  for (const SuiteRun* const run : runs) {
    const bool has_failed_since = failed.value_or(false);
    if (!failed) failed = run->failed;
    for (const Result& result : run->results) {
      const auto same = [&](const Result& other) { return other.has_place_of(result); };
      const bool is_stale = has_failed_since && result.kind->role == Role::rate;
      if (!is_stale && std::ranges::none_of(shown, same)) shown.push_back(result);
    }
  }
  if (failed) shown.push_back({&kind_of(Role::failed), {}, *failed ? 1.0 : 0.0});
  shown.push_back({&kind_of(Role::timestamp), {}, runs.front()->timestamp});
  std::ranges::stable_sort(shown, {}, &Result::kind);
  return shown;
}

}  // namespace gpumeter::jobs::benchmarks
