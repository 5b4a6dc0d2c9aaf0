#include "daemon/state/device_totals.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/records.hpp"

namespace gpumeter {
namespace {

constexpr std::string_view kDevice = "device";
constexpr std::string_view kCounter = "counter";

Error damaged(std::size_t line) { return Error("the counters of devices, line " + std::to_string(line)); }

}  // namespace

std::string DeviceTotals::key_of(const SeriesSpec& series) {
  std::string key(series.family->name);
  for (const Label& label : series.labels) key += "," + label.name + "=" + label.value;
  return key;
}

std::optional<double> DeviceTotals::find(const std::string& key) const {
  const MutexLock lock(mutex_);
  const auto found = totals_.find(key);
  return found == totals_.end() ? std::nullopt : found->second;
}

void DeviceTotals::plan(std::span<const std::string> keys) {
  const MutexLock lock(mutex_);
  planned_.clear();
  for (const std::string& key : keys) planned_.push_back(&totals_[key]);
}

void DeviceTotals::put(std::span<const Value> values) noexcept {
  const MutexLock lock(mutex_);
  const std::size_t count = std::min(values.size(), planned_.size());
  for (std::size_t i = 0; i < count; ++i) {
    if (values[i].status == ReadStatus::ok) *planned_[i] = values[i].total;
  }
}

std::map<std::string, double> DeviceTotals::all() const {
  const MutexLock lock(mutex_);
  std::map<std::string, double> known;
  for (const auto& [key, total] : totals_) {
    if (total) known.emplace(key, *total);
  }
  return known;
}

void DeviceTotals::set(const std::string& key, double total) {
  const MutexLock lock(mutex_);
  totals_[key] = total;
}

std::shared_ptr<DeviceTotals> TotalsBook::of(const std::string& uuid) {
  const MutexLock lock(mutex_);
  std::shared_ptr<DeviceTotals>& totals = devices_[uuid];
  if (totals == nullptr) totals = std::make_shared<DeviceTotals>();
  return totals;
}

void TotalsBook::forget(const std::string& uuid) {
  const MutexLock lock(mutex_);
  devices_.erase(uuid);
}

std::string TotalsBook::save() const {
  RecordWriter out;
  const MutexLock lock(mutex_);
  for (const auto& [uuid, totals] : devices_) {
    const std::map<std::string, double> all = totals->all();
    if (!all.empty()) out.begin(kDevice).text(uuid);
    for (const auto& [key, total] : all) out.begin(kCounter).text(key).number(total);
  }
  return out.take();
}

Result<Done> TotalsBook::load(std::string_view section) {
  std::map<std::string, std::shared_ptr<DeviceTotals>> devices;
  std::shared_ptr<DeviceTotals> device;
  std::size_t counters = 0;
  RecordReader in(section);
  while (in.next()) {
    if (in.kind() == kDevice && devices.size() < kMostDevices) {
      device = std::make_shared<DeviceTotals>();
      counters = 0;
      if (!devices.emplace(in.text(), device).second) in.fail();
    } else if (in.kind() == kCounter && device != nullptr && counters++ < kMostCounters) {
      const std::string key = in.text();
      const double total = in.number();
      if (!std::isfinite(total) || total < 0) in.fail();
      device->set(key, total);
    } else {
      in.fail();
    }
  }
  if (in.failed()) return damaged(in.line());
  const MutexLock lock(mutex_);
  devices_ = std::move(devices);
  return Done{};
}

}  // namespace gpumeter
