#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "base/text.hpp"
#include "collectors/attribution/workload_book.hpp"
#include "exporter/store/labels.hpp"

/// What the kubelet, Slurm and administrators say about workloads: their names, and the GPUs they were given.
namespace gpumeter::workloads {

/// What identifies a workload in its control group. Names are found by it.
struct NameKey {
  enum class By : std::uint8_t { container_id, pod_uid, slurm_job, slurm_sluid };
  By by;
  std::string id;  ///< as in WorkloadFacts

  auto operator<=>(const NameKey&) const = default;
};

/// One device as a source of allocations names it. The resolver knows the machine's devices.
struct DeviceSelector {
  enum class By : std::uint8_t {
    uuid,         ///< of a GPU or of a MIG instance
    pci_address,  ///< dddd:bb:dd.f, lower case
    minor,        ///< DeviceInfo::minor; with `/giN`, its MIG instance with this GPU instance id; with
                  ///< `/mig-PROFILE-ID-START`, the one of this profile (name and id) and place
    position,     ///< in the order of PCI addresses, from 0
  };
  By by;
  std::string id;      ///< digits for `position`; digits, or digits and a MIG instance, for `minor`
  std::string vendor;  ///< DeviceInfo::vendor; empty: any. Minors and positions count within a vendor

  auto operator<=>(const DeviceSelector&) const = default;
};

/// The label `source` of gpu_allocation_info.
enum class AllocationSource : std::uint8_t { kubelet, slurm, dra, manual, cgroup };
inline constexpr EnumNames<AllocationSource, 5> kAllocationSourceNames = {
    {{AllocationSource::kubelet, "kubelet"},
     {AllocationSource::slurm, "slurm"},
     {AllocationSource::dra, "dra"},
     {AllocationSource::manual, "manual"},
     {AllocationSource::cgroup, "cgroup"}}};
constexpr std::string_view to_string(AllocationSource source) noexcept {
  return kAllocationSourceNames.of(source);
}

/// A device was given to a workload, whether or not a process of it runs.
struct Allocation {
  DeviceSelector device;
  WorkloadId workload;
  AllocationSource source;
  std::optional<std::chrono::seconds> since{};  ///< since 1970; none: the source does not say
  std::vector<Label> names{};                   ///< as Names::labels, for a workload without a process

  bool operator==(const Allocation&) const = default;
};

/// Everything that one source says at one moment.
struct Names {
  /// Labels of gpu_workload_info in addition to those of the control group, such as k8s_pod or slurm_account,
  /// sorted by name. Valid label values.
  std::map<NameKey, std::vector<Label>> labels;
  std::vector<Allocation> allocations;

  bool operator==(const Names&) const = default;
};

/// The last word of every source. Sources write from their own threads; lanes and the daemon read copies of a
/// pointer, so nobody waits for a source. Any thread.
class NameBook {
 public:
  /// Replaces what the source of this name said. Empty `names`: the source has nothing to say any more.
  void publish(const std::string& source, Names names) GPUMETER_EXCLUDES(mutex_);

  /// The labels of all keys, from all sources; where two sources give one label, the source whose name comes
  /// first in the alphabet. Sorted by the label's name.
  std::vector<Label> labels_of(const WorkloadFacts& facts) const GPUMETER_EXCLUDES(mutex_);

  /// All sources' allocations, sorted by source.
  std::vector<Allocation> allocations() const GPUMETER_EXCLUDES(mutex_);

  /// Grows with every change.
  std::uint64_t generation() const GPUMETER_EXCLUDES(mutex_);

 private:
  mutable Mutex mutex_;
  std::map<std::string, std::shared_ptr<const Names>> sources_ GPUMETER_GUARDED_BY(mutex_);
  std::uint64_t generation_ GPUMETER_GUARDED_BY(mutex_) = 0;
};

}  // namespace gpumeter::workloads
