#pragma once

#include <map>
#include <string>
#include <vector>

#include "collectors/api/device_identity.hpp"
#include "collectors/api/device_status.hpp"
#include "daemon/fleet/collector_host.hpp"
#include "daemon/fleet/index_keeper.hpp"
#include "daemon/fleet/left_behind.hpp"
#include "daemon/fleet/member.hpp"
#include "daemon/fleet/settings.hpp"
#include "daemon/self/metrics.hpp"
#include "exporter/store/series_list.hpp"

namespace gpumeter {

/// The fleet's report about its devices, from its state at one moment; holds references only.
struct StatusView {
  const IndexKeeper& indexes;
  const std::map<std::string, CollectorHost>& hosts;
  const std::map<std::string, Member>& members;  ///< by uuid
  const LeftBehind& left_behind;

  /// Returns all known devices of running collectors, by index.
  std::vector<DeviceStatus> devices() const;

  /// Returns the devices that are read, by index.
  std::vector<DeviceIdentity> read_devices(const FleetSettings& settings) const;

  /// Returns all known devices of running collectors, also those that are missing, by index.
  std::vector<DeviceIdentity> known_devices(const FleetSettings& settings) const;

  /// Adds the health of the collectors.
  void describe(SelfState& self, bool is_released) const;

  /// Adds gpu_up of each known device, by collector. This includes missing devices of an earlier run, because
  /// alerts need their series. Devices that are still starting have none.
  void add_up(const FleetSettings& settings, std::map<std::string, SeriesList>& to) const;

 private:
  DeviceStatus status_of(const KnownDevice& known) const;
  const Member* find(const std::string& uuid) const;
};

}  // namespace gpumeter
