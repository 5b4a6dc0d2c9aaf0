#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/api/collector.hpp"
#include "collectors/sources/fdinfo/busy_counters.hpp"
#include "collectors/sources/fdinfo/device_watch.hpp"
#include "collectors/sources/fdinfo/processes.hpp"
#include "collectors/sources/file_cache.hpp"
#include "collectors/sources/host/memory.hpp"
#include "collectors/sources/runtime_power.hpp"
#include "collectors/table/device.hpp"
#include "collectors/tree/paths.hpp"

/// Devices that are described by a table alone: a folder of small files, with hwmon and devfreq below it. The
/// code knows no device by name; a collector adds rows and says where its devices are.
namespace gpumeter::tree {

/// What all devices of a collector share.
struct Roots {
  std::string sysfs;
  std::string procfs;
  std::shared_ptr<DrmUsers> users;  ///< null: clients are not scanned
};

/// What a kind of device is like, in addition to its rows.
struct Shape {
  /// The driver cannot be read while runtime power management has suspended the device. Otherwise the files
  /// are read in any state, because the driver serves them from its own memory.
  bool sleeps = false;
  /// The driver reports its clients in /proc/PID/fdinfo.
  bool has_clients = false;
  /// The driver of the card in class/drm that the clients open, if it is not the device's own (msm); a
  /// pattern.
  std::string_view client_driver;
  /// Folders that are slices of the device (see matches()), such as "**/neuron_core*".
  std::string_view slices;
  std::string_view slice_kind;  ///< the slices are named "<kind>:<number>"
  /// Info series beyond gpu_info; null: none.
  std::vector<SeriesSpec> (*info_series)(const DeviceInfo&) = nullptr;
};

/// One open device. Lane thread.
class TreeContext {
 public:
  TreeContext(Roots roots, const Shape& shape) : roots_(std::move(roots)), shape_(shape) {}

  Result<Done> open(const DeviceInfo& info);
  void close() noexcept;
  Readiness begin_pass(const Pass& pass) noexcept;
  bool awake() const noexcept { return awake_; }

  // For Divisible and DescribesItself.

  std::span<const Partition> partitions() const noexcept { return slices_; }
  void turn_to(std::size_t slice) noexcept { paths_.turn_to(&slice_folders_[slice]); }
  std::vector<SeriesSpec> info_series() const;

  // For KnowsProcesses.

  static constexpr Tier kProcessesTier = Tier::normal;
  ReadStatus processes(const Pass& pass, std::vector<DeviceProcess>& out) noexcept;

  // For readers, at attach. Names are as in TreePaths.

  TreePaths& paths() noexcept { return paths_; }
  std::optional<int> number_file(std::string_view name);
  std::optional<int> number_file_at(const std::string& path) { return numbers_.open(path); }
  std::optional<int> text_file(std::string_view name);
  bool has_clients() const noexcept { return static_cast<bool>(clients_); }
  bool has_host_memory() const noexcept { return memory_file_.read().status == ReadStatus::ok; }

  // For readers, each pass.

  Sample number(int file) noexcept { return numbers_.read(file); }
  TextCache::Text text(int file) noexcept { return texts_.read(file); }
  Nanoseconds now() const noexcept { return now_; }
  const fdinfo::BusyCounters& clients() const noexcept { return client_counters_; }
  /// Read by the first call in a pass.
  const HostMemoryFile::Reading& host_memory() noexcept;

 private:
  void find_slices();
  std::string client_device(const DeviceInfo& info) const;

  const Roots roots_;
  const Shape shape_;
  DeviceInfo info_;
  TreePaths paths_;
  FileCache numbers_;
  TextCache texts_;
  RuntimePower power_;
  HostMemoryFile memory_file_;
  HostMemoryFile::Reading memory_{};
  bool memory_is_fresh_ = false;
  fdinfo::DeviceWatch clients_;
  fdinfo::BusyCounters client_counters_;
  fdinfo::ProcessLists client_lists_;
  std::vector<Partition> slices_;
  std::vector<std::string> slice_folders_;
  Nanoseconds now_{};
  bool awake_ = true;
};

}  // namespace gpumeter::tree
