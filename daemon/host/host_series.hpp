#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/device_labels.hpp"
#include "collectors/api/device_identity.hpp"
#include "collectors/attribution/workload_settings.hpp"
#include "exporter/store/series_list.hpp"
#include "exporter/store/store.hpp"

namespace gpumeter {

/// The host's facts about its GPUs: the paths between them (gpu_topology_info), the pressure of the host's
/// memory and I/O, and the CPU time of the workloads that hold a GPU. Reads files of sysfs and procfs that no
/// GPU's driver serves. One thread at a time.
class HostSeries {
 public:
  struct Settings {
    std::string sysfs;   ///< "/sys"
    std::string procfs;  ///< "/proc"
    DeviceLabels labels;
    WorkloadSettings workloads;
  };
  HostSeries(Settings settings, Store& store)
      : settings_(std::move(settings)), topology_(store.attach()), readings_(store.attach()) {}

  /// The number of paths grows with the square of the GPUs. With more GPUs than this there is no topology.
  static constexpr std::size_t kMostInTopology = 32;

  /// Reads everything and commits it. A machine without `devices` has none of these series. The topology is
  /// read only if the devices differ from those of the last call.
  void publish(const std::vector<DeviceIdentity>& devices, Nanoseconds now);

 private:
  void publish_topology(Nanoseconds now);
  void add_pressure();
  void add_workloads();

  const Settings settings_;
  SeriesList topology_;
  SeriesList readings_;
  std::vector<DeviceIdentity> devices_;  ///< of the last topology
};

}  // namespace gpumeter
