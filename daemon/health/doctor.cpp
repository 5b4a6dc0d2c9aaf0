#include "daemon/health/doctor.hpp"

#include <string>
#include <utility>

#include "collectors/api/catalog.hpp"

namespace gpumeter {

using health::DeviceHealth;
using health::Finding;

namespace {

// How often the thread asks whether it may begin.
constexpr auto kUntilBegin = std::chrono::milliseconds(50);

}  // namespace

Doctor::Doctor(Store& store, const Clock& clock)
    : store_(store),
      clock_(clock),
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
  auto report = std::make_shared<const health::Report>(judge_.judge(store_, clock_.monotonic()));
  publish(*report);
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
