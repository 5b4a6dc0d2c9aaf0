#include "daemon/health/doctor.hpp"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "collectors/api/catalog.hpp"

namespace gpumeter {

using health::DeviceHealth;
using health::Finding;

namespace {

// How often the thread asks whether it may begin.
constexpr auto kUntilBegin = std::chrono::milliseconds(50);

/// The subject of findings: a device, or the machine, which has no number.
struct Subject {
  std::string gpu;
  std::string uuid;
  health::State state;
};

bool has(std::span<const Finding> findings, const Finding& wanted) {
  return std::ranges::any_of(findings, [&](const Finding& each) {
    return each.reason == wanted.reason && each.severity == wanted.severity && each.action == wanted.action;
  });
}

void log_change(const Subject& subject, const Finding& finding, bool begins, Nanoseconds at, Log& log) {
  const std::string held = begins ? "" : std::to_string((at - finding.since) / std::chrono::seconds(1));
  const Log::Fields fields = {{"gpu", subject.gpu},
                              {"uuid", subject.uuid},
                              {"state", std::string(to_string(subject.state))},
                              {"reason", finding.reason},
                              {"severity", std::string(to_string(finding.severity))},
                              {"action", std::string(to_string(finding.action))},
                              {"detail", finding.text},
                              {"held_seconds", held}};
  if (begins) return log.warn("health: a reason begins", fields);
  log.info("health: a reason ends", fields);
}

void log_changes(const Subject& subject, std::span<const Finding> before, std::span<const Finding> now,
                 Nanoseconds at, Log& log) {
  for (const Finding& each : now) {
    if (!has(before, each)) log_change(subject, each, true, at, log);
  }
  for (const Finding& each : before) {
    if (!has(now, each)) log_change(subject, each, false, at, log);
  }
}

void log_changes(const health::Report& before, const health::Report& now, Log& log) {
  for (const DeviceHealth& device : now.devices) {
    const auto past = std::ranges::find(before.devices, device.uuid, &DeviceHealth::uuid);
    const std::span<const Finding> known =
        past == before.devices.end() ? std::span<const Finding>() : past->findings;
    log_changes({device.gpu, device.uuid, device.state}, known, device.findings, now.at, log);
  }
  log_changes({"", "", health::state_of(now.machine)}, before.machine, now.machine, now.at, log);
}

}  // namespace

Doctor::Doctor(Store& store, const Clock& clock, Log& log, std::shared_ptr<health::EventBook> book)
    : store_(store),
      clock_(clock),
      log_(log),
      book_(std::move(book)),
      series_(store.attach()),
      report_(std::make_shared<const health::Report>()),
      worker_(clock) {}

Result<Done> Doctor::start(std::function<bool()> may_begin) {
  return worker_.start("health", [this, may_begin = std::move(may_begin)]() -> Nanoseconds {
    has_begun_ = has_begun_ || may_begin();
    if (!has_begun_) return kUntilBegin;
    judge();
    return std::chrono::seconds(1);
  });
}

void Doctor::judge() {
  if (!std::exchange(has_resumed_, true)) judge_.resume(book_->get());
  auto report = std::make_shared<const health::Report>(judge_.judge(store_, clock_.monotonic()));
  publish(*report);
  book_->put(judge_.events());
  log_changes(*this->report(), *report, log_);
  const MutexLock lock(mutex_);
  report_ = std::move(report);
}

std::shared_ptr<const health::Report> Doctor::report() const {
  const MutexLock lock(mutex_);
  return report_;
}

void Doctor::publish(const health::Report& report) {
  for (const DeviceHealth& device : report.devices) {
    if (device.labels == Labels()) continue;  // not read yet, so it has no series at all
    for (const auto& [state, name] : health::kStateNames) {
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
  }
  series_.commit(report.at);
}

}  // namespace gpumeter
