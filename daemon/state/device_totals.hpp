#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.hpp"
#include "base/result.hpp"
#include "collectors/api/sample.hpp"
#include "collectors/api/series.hpp"

namespace gpumeter {

/// The counters of one device that gpumeter counts itself, as of the last pass or of an earlier process. A
/// hardware counter is not among them: the driver keeps it. Any thread; calls wait only for the mutex.
class DeviceTotals {
 public:
  /// A counter by its family and its own labels; the device's labels may change.
  static std::string key_of(const SeriesSpec& series);

  std::optional<double> find(const std::string& key) const GPUMETER_EXCLUDES(mutex_);
  /// From now on, put() writes these counters, in this order. Other counters keep their totals.
  void plan(std::span<const std::string> keys) GPUMETER_EXCLUDES(mutex_);
  struct Value {
    double total;
    ReadStatus status;
  };
  /// A value without the status `ok` is not yet known, so the earlier total is kept. Allocates nothing.
  void put(std::span<const Value> values) noexcept GPUMETER_EXCLUDES(mutex_);

  std::map<std::string, double> all() const GPUMETER_EXCLUDES(mutex_);
  void set(const std::string& key, double total) GPUMETER_EXCLUDES(mutex_);

 private:
  mutable Mutex mutex_;
  std::map<std::string, std::optional<double>> totals_ GPUMETER_GUARDED_BY(mutex_);
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
  std::shared_ptr<DeviceTotals> of(const std::string& uuid) GPUMETER_EXCLUDES(mutex_);

  /// The device was forgotten: its counters start from 0 if it returns.
  void forget(const std::string& uuid) GPUMETER_EXCLUDES(mutex_);

  /// The section of the state file.
  std::string save() const GPUMETER_EXCLUDES(mutex_);
  Result<Done> load(std::string_view section) GPUMETER_EXCLUDES(mutex_);

 private:
  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<DeviceTotals>> devices_ GPUMETER_GUARDED_BY(mutex_);
};

}  // namespace gpumeter
