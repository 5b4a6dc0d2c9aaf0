#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collectors/attribution/cost/cost_ledger.hpp"
#include "collectors/attribution/device_meter.hpp"

namespace gpumeter::workloads {

/// The figures of the device that a cost needs, as of a pass.
struct DeviceReadings {
  std::optional<double> energy_total;
  std::optional<double> busy_seconds;                       ///< the device's own counter
  std::vector<std::pair<std::string, double>> throttled{};  ///< seconds by cause; counters
};

/// Adds up what each workload of one device costs, from the device's meter. One thread, the device's lane.
class CostMeter {
 public:
  /// Continues the costs of an earlier process.
  void resume(const DeviceAccount& account);

  /// After each pass: throttled time goes to the workloads that hold the device.
  void pass(const DeviceMeter& meter, const DeviceReadings& readings);
  /// After each list of the processes: time held, busy and idle since the last one.
  void look(Nanoseconds now, const DeviceMeter& meter, const DeviceReadings& readings);
  /// The time until the next look() is not counted.
  void interrupt() noexcept;

  /// The account now.
  std::shared_ptr<const DeviceAccount> account(const std::string& uuid, unsigned index,
                                               const DeviceMeter& meter,
                                               const DeviceReadings& readings) const;

 private:
  struct Tally {
    DeviceCost cost;
    double busy_counter = 0;  // of the meter, at the last look
    bool was_present = false;
    Nanoseconds begun{};
  };
  void add(Tally& tally, const Workload& workload, double elapsed, std::optional<double> device_busy);
  std::optional<double> device_busy(const DeviceReadings& readings);

  std::map<WorkloadId, Tally> tallies_;
  std::optional<Nanoseconds> looked_at_;
  std::optional<double> last_device_busy_;
  std::map<std::string, double> last_throttled_;
};

}  // namespace gpumeter::workloads
