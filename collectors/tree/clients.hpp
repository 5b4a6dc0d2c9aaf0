#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collectors/api/drm_use.hpp"
#include "collectors/api/process_list.hpp"

namespace gpumeter::tree {

/// The use of one device by its DRM clients, as the machine's scanner of /proc/PID/fdinfo reports it. Lane
/// thread; no call blocks.
class Clients {
 public:
  /// The interval that is asked for. The scanner may be slower.
  static constexpr Nanoseconds kScanEvery = std::chrono::seconds(5);

  /// `device`: see DrmUsers::watch(). Null `users`: nothing is known.
  void open(std::shared_ptr<DrmUsers> users, const std::string& device);
  void close() noexcept { *this = Clients(); }

  bool is_open() const noexcept { return users_ != nullptr; }

  /// Takes the last scan, if it is a new one.
  void begin_pass() noexcept;

  /// Busy time since the daemon's start; nullopt while no client has reported the class.
  std::optional<double> engine_seconds(EngineClass engine) const noexcept;
  /// The sum over scans of the busiest class of each.
  std::optional<double> busy_seconds() const noexcept { return busy_; }
  /// The busiest class of the last scan, at most 1; nullopt before the second scan.
  std::optional<double> utilization() const noexcept { return utilization_; }

  /// Same contract as ListsProcesses::processes(). A process without memory of the device's own is listed
  /// with the host's memory that it holds for the device.
  ReadStatus processes(std::vector<DeviceProcess>& out);

 private:
  struct Seen {
    std::uint64_t start_ticks = 0;
    double busy_seconds = 0;
  };
  void take(std::shared_ptr<const DrmUse> use) noexcept;
  std::optional<double> busy_since(const DrmProcess& process, std::map<int, Seen>& seen) const;

  std::shared_ptr<DrmUsers> users_;
  std::shared_ptr<void> watch_;
  std::string device_;
  std::shared_ptr<const DrmUse> use_;
  std::optional<double> busy_;
  std::optional<double> utilization_;
  std::map<int, Seen> seen_;  // by pid, as of the last list
  Nanoseconds listed_scan_{};
};

}  // namespace gpumeter::tree
