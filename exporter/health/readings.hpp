#pragma once

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "exporter/health/conditions.hpp"
#include "exporter/store/labels.hpp"
#include "exporter/store/store.hpp"

namespace gpumeter::health {

/// A device, or one link of it, as its series describe it. Facts stay known while the device is lost.
struct DeviceFacts {
  Labels labels;  ///< of its gpu_up
  std::string gpu, uuid, vendor, model, pci_address, driver;
  std::string collector;    ///< of its gpu_up
  std::uint32_t owner = 0;  ///< the device's place; of a link: that of its device
  std::string
      link;  ///< "link 14" or "xgmi link 3"; empty: the device itself. Its uuid is then "GPU-0/nvlink/14"
  std::vector<std::uint32_t> links;  ///< places of the device's links that have series
};

/// The numbers that the table reads, copied from a store: a matrix of devices and readings, in which a link
/// has a line of its own. The labels of a family are matched again only after its list of series has changed.
/// One thread.
class Readings {
 public:
  /// The readings of these conditions, and the others; each is stored once.
  Readings(std::span<const Condition> conditions, std::span<const Reading> others);

  /// The column of one of these readings.
  std::size_t column(const Reading& reading) const;

  /// Copies the numbers as of `now` (CLOCK_MONOTONIC). Where a device that is up and awake has no value, its
  /// last one counts for a while. The store's mutex is held while numbers and label handles
  /// are copied.
  void copy_from(const Store& store, Nanoseconds now);

  const std::vector<DeviceFacts>& devices() const noexcept { return devices_; }
  /// NaN if the device has no such series with a value. A link that has none has its device's value.
  double value(std::size_t device, std::size_t column) const noexcept {
    const double own = values_[device * columns_.size() + column];
    const std::size_t owner = devices_[device].owner;
    return owner == device || !std::isnan(own) ? own : values_[owner * columns_.size() + column];
  }

  /// The collectors whose drivers are closed on request.
  const std::set<std::string>& released() const noexcept { return released_; }
  /// gpumeter_devices_expected by its label `vendor`.
  const std::map<std::string, double>& expected() const noexcept { return expected_; }

 private:
  /// Adds a series to a number.
  struct Target {
    std::uint32_t device;
    std::uint32_t column;
    double text = 0;  ///< for a reading of a label's text: the text's number
  };
  /// As the hold time of device_lost: one pass in which every read fails is no loss.
  static constexpr Nanoseconds kLost = std::chrono::seconds(5);
  /// A gauge leaves the store at its first failed read. Its last value counts so much longer, so that one
  /// failed read neither ends a finding nor restarts a hold time. The slow tier reads once a minute: two
  /// failed reads in a row are bridged, a source that fails for good is not.
  static constexpr Nanoseconds kKept = std::chrono::minutes(2);

  struct Last {
    double value = kAbsent;
    Nanoseconds at{};  ///< CLOCK_MONOTONIC
  };

  /// A family of the store: a copy of its list and of its values.
  struct Source {
    const MetricDescriptor* family = nullptr;
    std::uint64_t version = 0;  ///< of the list; 0: none yet
    std::vector<Labels> labels = {};
    std::vector<double> values = {};  ///< NaN: none
    std::vector<std::string> collectors = {};
    bool is_new = false;                    ///< the list has changed and must be matched
    bool awaits_device = false;             ///< a series names a device that is not known yet
    std::vector<Labels> matched = {};       ///< the list for which the rest was made
    std::vector<std::uint32_t> first = {};  ///< by position: where its targets begin; one more at the end
    std::vector<Target> targets = {};
    std::vector<Last> lasts = {};  ///< by position of `matched`
  };

  void copy(const Family& family);
  void match(Source& source);
  void match_machine(const Source& source);
  void add_targets(Source& source, const std::vector<Labels::Pair>& pairs, std::uint32_t device);
  void find_read_devices(Nanoseconds now);
  static void rearrange_last_values(Source& source);
  void keep_last_values(Source& source, Nanoseconds now);
  void reduce(const Source& source);
  std::uint32_t device_of(const MetricDescriptor& family, const Labels& labels,
                          const std::vector<Labels::Pair>& pairs);
  std::uint32_t link_of(std::uint32_t device, const std::vector<Labels::Pair>& pairs);
  double number_of(std::string_view text);

  std::vector<Reading> columns_;
  std::unordered_map<std::string_view, std::vector<std::uint32_t>> columns_of_;  ///< by the family's name
  std::vector<Source> sources_;                                                  ///< by the family's id
  std::vector<DeviceFacts> devices_;
  std::vector<std::optional<Nanoseconds>> read_at_;  ///< by device: when it was up last; none while it sleeps
  std::unordered_map<std::string, std::uint32_t> by_uuid_;
  std::vector<double> values_;
  std::map<std::string, double, std::less<>> texts_;
  std::set<std::string> released_;
  std::map<std::string, double> expected_;
};

}  // namespace gpumeter::health
