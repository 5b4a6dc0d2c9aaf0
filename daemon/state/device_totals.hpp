#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.hpp"
#include "base/records.hpp"
#include "base/result.hpp"
#include "collectors/api/sample.hpp"
#include "collectors/api/series.hpp"

namespace gpumeter {

/// The counters of one device that gpumeter counts itself, as of the last pass or of an earlier process. A
/// hardware counter is not among them: the driver keeps it. Any thread; calls wait only for the mutex.
class DeviceTotals {
 public:
  /// A counter by its family and its own labels; the device's labels may change.
  static std::string key_of(const SeriesSpec& series) {
    std::string key(series.family->name);
    for (const Label& label : series.labels) key += "," + label.name + "=" + label.value;
    return key;
  }

  struct Total {
    std::optional<double> total;
    double since = 0;  ///< Unix time in seconds at which the counter was 0; 0: an earlier version did not say
    bool operator==(const Total&) const = default;
  };

  std::optional<double> find(const std::string& key) const GPUMETER_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    const auto found = totals_.find(key);
    return found == totals_.end() ? std::nullopt : found->second.total;
  }
  /// Total::since of a counter; that of a new one is `now`.
  double begin(const std::string& key, double now) GPUMETER_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return totals_.try_emplace(key, Total{{}, now}).first->second.since;
  }
  /// From now on, put() writes these counters, which have begun, in this order. Other counters keep their
  /// totals.
  void plan(std::span<const std::string> keys) GPUMETER_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    planned_.clear();
    for (const std::string& key : keys) planned_.push_back(&totals_[key].total);
  }
  struct Value {
    double total;
    ReadStatus status;
  };
  /// A value without the status `ok` is not yet known, so the earlier total is kept. Allocates nothing.
  void put(std::span<const Value> values) noexcept GPUMETER_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    const std::size_t count = std::min(values.size(), planned_.size());
    for (std::size_t i = 0; i < count; ++i) {
      if (values[i].status == ReadStatus::ok) *planned_[i] = values[i].total;
    }
  }

  /// Those that have a total.
  std::map<std::string, Total> all() const GPUMETER_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    std::map<std::string, Total> known = totals_;
    std::erase_if(known, [](const auto& each) { return !each.second.total; });
    return known;
  }
  void set(const std::string& key, const Total& total) GPUMETER_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    totals_[key] = total;
  }

 private:
  mutable Mutex mutex_;
  std::map<std::string, Total> totals_ GPUMETER_GUARDED_BY(mutex_);
  std::vector<std::optional<double>*> planned_ GPUMETER_GUARDED_BY(mutex_);  // elements of totals_
};

/// The totals of all devices, by uuid. They continue after a restart and after a boot of the machine, because
/// gpumeter counted them. Any thread.
class TotalsBook {
 public:
  /// Devices and counters of a device in a file; more than any machine has.
  static constexpr std::size_t kMostDevices = 4096;
  static constexpr std::size_t kMostCounters = 4096;

  /// Creates an empty one for a device that is not known.
  std::shared_ptr<DeviceTotals> of(const std::string& uuid) GPUMETER_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    std::shared_ptr<DeviceTotals>& totals = devices_[uuid];
    if (totals == nullptr) totals = std::make_shared<DeviceTotals>();
    return totals;
  }

  /// The device was forgotten: its counters start from 0 if it returns.
  void forget(const std::string& uuid) GPUMETER_EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    devices_.erase(uuid);
  }

  /// The section of the state file.
  std::string save() const GPUMETER_EXCLUDES(mutex_) {
    RecordWriter out;
    const MutexLock lock(mutex_);
    for (const auto& [uuid, totals] : devices_) {
      const std::map<std::string, DeviceTotals::Total> all = totals->all();
      if (!all.empty()) out.begin(kDevice)(uuid);
      for (const auto& [key, total] : all) out.begin(kCounter)(key, *total.total, total.since);
    }
    return out.take();
  }
  Result<Done> load(std::string_view section) GPUMETER_EXCLUDES(mutex_) {
    std::map<std::string, std::shared_ptr<DeviceTotals>> devices;
    std::shared_ptr<DeviceTotals> device;
    std::size_t counters = 0;
    RecordReader in(section);
    while (in.next()) {
      if (in.kind() == kDevice && devices.size() < kMostDevices) {
        device = std::make_shared<DeviceTotals>();
        counters = 0;
        in.check(devices.emplace(in.take<std::string>(), device).second);
      } else if (in.kind() == kCounter && device != nullptr && counters++ < kMostCounters) {
        const auto key = in.take<std::string>();
        double total = 0, since = 0;
        in.amounts(total);
        if (in.has_field()) in.amounts(since);
        device->set(key, {total, since});
      } else {
        in.fail();
      }
    }
    if (in.failed()) return Error("the counters of devices, line " + std::to_string(in.line()));
    const MutexLock lock(mutex_);
    devices_ = std::move(devices);
    return Done{};
  }

 private:
  static constexpr std::string_view kDevice = "device";
  static constexpr std::string_view kCounter = "counter";

  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<DeviceTotals>> devices_ GPUMETER_GUARDED_BY(mutex_);
};

}  // namespace gpumeter
