#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "collectors/api/device_identity.hpp"
#include "collectors/attribution/names/name_book.hpp"
#include "collectors/attribution/workload_book.hpp"
#include "exporter/store/series_list.hpp"
#include "exporter/store/store.hpp"

/// Allocations: which GPU was given to which workload, and whether it uses it.
namespace gpumeter::allocation {

/// A device or a part of one, as in the labels `uuid` and `partition`.
struct Place {
  std::string uuid;
  std::string partition;  ///< empty: the whole device

  auto operator<=>(const Place&) const = default;
};

/// A counter of busy time and the time of its commit.
struct BusyTime {
  double seconds = 0;
  Nanoseconds at{};  ///< CLOCK_MONOTONIC
};

/// A partition as gpu_partition_info describes it; empty: it has no such label.
struct PartitionFacts {
  Place place;
  std::string mig_uuid;
  std::string gpu_instance;
  std::string profile = {};     ///< "1g.10gb+me"
  std::string profile_id = {};  ///< NVML's number of the profile
  std::string placement = {};   ///< first memory slice
};

/// Who was busy where, copied from one walk over the store.
struct Readings {
  using OnDevice = std::pair<std::string, workloads::WorkloadId>;  ///< the device's uuid, and a workload

  std::map<Place, BusyTime> busy;             ///< of devices and of partitions
  std::map<OnDevice, BusyTime> of_workloads;  ///< if the driver reports it
  std::set<OnDevice> present;                 ///< has or had a process there
  std::map<std::string, Nanoseconds> listed;  ///< devices whose driver lists processes, by uuid
  std::vector<PartitionFacts> partitions;

  /// The workload's own busy time on the device; 0 if the driver lists processes and it has none there.
  /// nullopt: unknown.
  std::optional<BusyTime> own(const OnDevice& key) const;
};

/// Any thread. The store's mutex is held to copy the series of five families.
Readings read(const Store& store);

/// The series of allocations: gpu_allocation_info, gpu_allocation_start_timestamp_seconds and
/// gpu_allocated_idle_seconds_total. One thread.
class Meter {
 public:
  struct Settings {
    double idle_below = 0.01;  ///< busy share below which an allocated GPU is idle
    /// A busy share is a mean over this time, or longer if values come less often. It has to exceed the
    /// intervals of the readings: fast for devices, normal for lists of processes.
    Nanoseconds of_device = std::chrono::seconds(10);
    Nanoseconds of_workload = std::chrono::seconds(30);
  };
  explicit Meter(Settings settings) : settings_(settings) {}

  /// How long a counter stays after the allocation's end, so that a scraper reads its final value.
  static constexpr Nanoseconds kStays = std::chrono::minutes(10);
  /// Limit of allocations with series: 64 workloads on each of 64 GPUs. Further ones have none.
  static constexpr std::size_t kMost = 4096;

  /// Takes the present allocations and accounts for the time since the last call. Call about once a second.
  void update(std::span<const workloads::Allocation> allocations, std::span<const DeviceIdentity> devices,
              const Readings& readings, Nanoseconds now);
  void write(SeriesList& out) const;

  /// The idle time of each allocation, as lines for load() (base/records.hpp).
  std::string save() const;
  /// Allocations that are still there go on from what an earlier meter saved. An Error for other lines, which
  /// change nothing.
  Result<Done> load(std::string_view lines);

  /// No allocation, and no series of one that ended.
  bool is_empty() const noexcept { return held_.empty(); }
  /// Allocations of the last update whose device the machine does not have.
  const std::vector<workloads::Allocation>& unresolved() const noexcept { return unresolved_; }

 private:
  struct Key {
    Place place;
    workloads::WorkloadId workload;

    auto operator<=>(const Key&) const = default;
  };
  struct Held {
    Labels device;                                  ///< gpu and uuid, and partition if there is one
    std::set<workloads::AllocationSource> sources;  ///< empty: the allocation has ended
    std::optional<std::chrono::seconds> since;      ///< the earliest of the sources
    std::optional<double> idle_seconds;             ///< nullopt: the busy time was never known
    std::optional<BusyTime> from;                   ///< start of the present mean
    bool is_from_own = false;                       ///< `from` is of the workload, not of the device
    Nanoseconds last_seen{};
  };

  void take(const workloads::Allocation& allocation, const Place& place, Labels device, Nanoseconds now);
  void account(const Key& key, Held& held, const Readings& readings);
  void forget(Nanoseconds now);

  Settings settings_;
  std::map<Key, Held> held_;
  std::map<Key, double> earlier_;  ///< idle seconds that an earlier meter saved, until the allocation is seen
  std::map<Place, std::size_t> holders_;  ///< number of workloads of each place, now
  std::vector<workloads::Allocation> unresolved_;
};

}  // namespace gpumeter::allocation
