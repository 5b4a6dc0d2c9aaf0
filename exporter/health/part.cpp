#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <utility>

#include "base/clock.hpp"
#include "base/log.hpp"
#include "base/records.hpp"
#include "collectors/api/catalog.hpp"
#include "collectors/api/machine.hpp"
#include "exporter/health/judge.hpp"
#include "exporter/health/past.hpp"
#include "exporter/store/series_list.hpp"
#include "exporter/store/store.hpp"

namespace gpumeter::health {
namespace {

constexpr Nanoseconds kEvery = std::chrono::seconds(1);

constexpr std::string_view kEvent = "event";
// More than a machine's devices have kinds of events.
constexpr std::size_t kMostEvents = 100'000;

/// Of the series by which an event is known: counters have names that end so.
bool is_counter(std::string_view series) { return series.substr(0, series.find(',')).ends_with("_total"); }

/// The subject of findings: a device, or the machine, which has no number.
struct Subject {
  std::string gpu;
  std::string uuid;
  State state;
};

bool has(std::span<const Finding> findings, const Finding& wanted) {
  return std::ranges::any_of(findings, [&](const Finding& each) { return each.is_same(wanted); });
}

/// "GPU 6 failed: xid_79; reboot".
std::string begin_text(const std::string& whose, const Finding& finding) {
  return whose + " " + std::string(to_string(finding.severity)) + ": " + finding.reason + "; " +
         std::string(to_string(finding.action));
}

/// "GPU 6 is ok again after 12m30s" for the last reason of several, otherwise "GPU 6: xid_79 has ended".
std::string end_text(const std::string& whose, const Finding& finding, bool is_ok, Nanoseconds held) {
  if (!is_ok) return whose + ": " + finding.reason + " has ended";
  return whose + " is ok again after " + duration_text(std::chrono::floor<std::chrono::seconds>(held));
}

void log_change(const Subject& subject, const Finding& finding, const std::string& text,
                const std::string& held, Log& log) {
  const Log::Fields fields = {{"gpu", subject.gpu},
                              {"uuid", subject.uuid},
                              {"state", std::string(to_string(subject.state))},
                              {"reason", finding.reason},
                              {"severity", std::string(to_string(finding.severity))},
                              {"action", std::string(to_string(finding.action))},
                              {"detail", finding.text},
                              {"held_seconds", held}};
  if (held.empty()) return log.warn(text, fields);
  log.info(text, fields);
}

void log_changes(const Subject& subject, std::span<const Finding> before, std::span<const Finding> now,
                 Nanoseconds at, Log& log) {
  const std::string whose = subject.gpu.empty() ? "the machine" : "GPU " + subject.gpu;
  for (const Finding& each : now) {
    if (!has(before, each)) log_change(subject, each, begin_text(whose, each), "", log);
  }
  for (const Finding& each : before) {
    if (has(now, each)) continue;
    const bool is_ok = subject.state == State::ok && &each == &before.back();
    const Nanoseconds held = at - each.since;
    log_change(subject, each, end_text(whose, each, is_ok, held),
               std::to_string(held / std::chrono::seconds(1)), log);
  }
}

void log_changes(const Report& before, const Report& now, Log& log) {
  for (const DeviceHealth& device : now.devices) {
    const auto past = std::ranges::find(before.devices, device.uuid, &DeviceHealth::uuid);
    const std::span<const Finding> known =
        past == before.devices.end() ? std::span<const Finding>() : past->findings;
    log_changes({device.gpu, device.uuid, device.state}, known, device.findings, now.at, log);
  }
  log_changes({"", "", state_of(now.machine)}, before.machine, now.machine, now.at, log);
}

class Health final : public Part, public Keeps {
 public:
  explicit Health(const PartContext& context)
      : context_(context), series_(context.store.attach({}, context.name)) {}

  Nanoseconds turn(Nanoseconds now) override {
    Report report = judge_.judge(context_.store, now);
    if (!context_.machine.is_recorded) publish(report);  // the recording has its own
    log_changes(*context_.machine.health.get(), report, context_.log);
    context_.machine.health.publish(std::move(report));
    return kEvery;
  }

  std::string save() const override;
  Result<Done> resume(std::string_view section, bool is_of_this_boot) override;

 private:
  void publish(const Report& report);

  const PartContext context_;
  Judge judge_;
  SeriesList series_;
};

void Health::publish(const Report& report) {
  for (const DeviceHealth& device : report.devices) {
    if (device.labels == Labels()) continue;  // not read yet, so it has no series at all
    for (const auto& [state, name] : kStateNames) {
      series_.add(catalog::health, device.labels.with({{"state", std::string(name)}}),
                  device.state == state ? 1 : 0);
    }
  }
  for (const DeviceHealth& device : report.devices) {
    for (const Finding& finding : device.findings) {
      series_.add(catalog::health_reason,
                  device.labels.with({{"reason", finding.reason},
                                      {"severity", std::string(to_string(finding.severity))},
                                      {"action", std::string(to_string(finding.action))}}),
                  1);
    }
    for (const Advice& advice : device.advice)
      series_.add(catalog::health_advisory_info, device.labels.with({{"advisory", advice.name}}), 1);
  }
  series_.commit(report.at);
}

std::string Health::save() const {
  RecordWriter out;
  for (const auto& [uuid, events] : judge_.events()) {
    for (const auto& [series, event] : events) {
      out.begin(kEvent)(uuid, series, event.count, event.at);
      for (const double growth : event.growth) out(growth);
    }
  }
  return out.take();
}

Result<Done> Health::resume(std::string_view section, bool is_of_this_boot) {
  Events events;
  std::size_t count = 0;
  RecordReader in(section);
  while (in.next()) {
    std::string uuid = in.take<std::string>();
    std::string series = in.take<std::string>();
    OngoingEvent event{};
    in(event.count, event.at).check(in.kind() == kEvent && event.count > 0 && ++count <= kMostEvents);
    while (in.has_field() && event.growth.size() < Window::kSlots) in.amounts(event.growth.emplace_back());
    events[std::move(uuid)][std::move(series)] = std::move(event);
  }
  if (in.failed()) return Error("the events of devices, line " + std::to_string(in.line()));
  // A boot resets the GPUs. What a GPU ever had, such as the number of its links, stays the measure.
  if (!is_of_this_boot) {
    for (auto& [uuid, of_device] : events)
      std::erase_if(of_device, [](const auto& event) { return is_counter(event.first); });
  }
  judge_.resume(std::move(events));
  return Done{};
}

}  // namespace

constexpr const MetricDescriptor* kFamilies[] = {&catalog::health, &catalog::health_reason,
                                                 &catalog::health_advisory_info};

const PartEntry kPart = {.name = "health",
                         .families = kFamilies,
                         .section = "events",
                         .reads_store = true,
                         .open = open_part<Health>};

}  // namespace gpumeter::health
