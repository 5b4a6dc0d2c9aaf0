#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collectors/amd/chip.hpp"
#include "collectors/amd/gpu_metrics/blob.hpp"
#include "collectors/amd/kfd/card_processes.hpp"
#include "collectors/amd/kfd/topology.hpp"
#include "collectors/amd/partitions.hpp"
#include "collectors/amd/paths.hpp"
#include "collectors/amd/readers/throttle_residency.hpp"
#include "collectors/amd/users.hpp"
#include "collectors/api/collector.hpp"
#include "collectors/sources/file_cache.hpp"
#include "collectors/sources/runtime_power.hpp"
#include "collectors/sources/sleep_policy.hpp"
#include "collectors/sources/sysfs.hpp"
#include "collectors/table/device.hpp"
#include "collectors/table/settled.hpp"

namespace gpumeter::amd {

/// One card as its rows read it: the open files, and what this pass has read of them already. Readers
/// (amd_readers.hpp) turn it into values. Lane thread.
class AmdContext {
 public:
  AmdContext() = default;
  /// `sysfs_root`: where the compute driver's topology is.
  explicit AmdContext(std::string sysfs_root) : sysfs_root_(std::move(sysfs_root)) {}

  /// Opens the card whose PCI function is the folder `info.source`. An Error: it is not there.
  Result<Done> open(const DeviceInfo& info);

  void close() noexcept;

  /// Says `asleep` also while the card is left alone so that it can fall asleep (SleepPolicy). Something runs
  /// on it where somebody keeps it awake anyway (AmdUsers), where it is busy at all, or where its video
  /// memory in use has changed: the latter can be seen without a read that wakes, so that a job is noticed at
  /// once.
  Readiness begin_pass(const Pass& pass) noexcept;

  /// By the kernel's word: false while it sleeps or is about to, whether it is read in this pass or not.
  bool awake() const noexcept { return awake_; }

  /// The card as the compute driver knows it, all its partitions together.
  const std::optional<KfdNode>& kfd() const noexcept { return kfd_; }

  // For BindsAgain. A card that sleeps is not asked, so it binds again once it is awake.
  void end_binding();
  bool has_more(Nanoseconds now) noexcept;

  // For SettlesPasses.
  void settle(const Pass& pass, bool is_observed) noexcept;

  // For KnowsProcesses.

  static constexpr Tier kProcessesTier = Tier::normal;
  ReadStatus processes(const Pass& pass, std::vector<DeviceProcess>& out) noexcept {
    return processes_.read(pass, out);
  }

  // For Divisible: the parts of a divided card, and whose rows are bound next.

  std::span<const Partition> partitions() const noexcept { return partitions_; }
  void turn_to(std::size_t partition) noexcept { partition_ = partition; }
  std::size_t partition() const noexcept { return partition_; }
  const std::optional<KfdNode>& partition_node(std::size_t partition) const {
    return partition_nodes_[partition];
  }

  // For readers, at attach: handles for names as in AmdPaths; nullopt if there is no such file.

  std::optional<int> file(std::string_view name);
  std::optional<int> constant_file(std::string_view name);  ///< read once, see FileCache
  std::optional<int> text_file(std::string_view name);
  std::optional<int> lines_file(std::string_view name);  ///< for several rows each, see TextCache

  Chip chip() const noexcept { return chip_; }

  /// True unless the card has no gpu_metrics, or a version that is known to lack the field (or that element
  /// of it, or its unit). Of a card that sleeps only the former can be told.
  bool has_blob_field(std::size_t field, std::size_t element = 0) noexcept;

  struct Pair {
    int left, right;
  };
  int keep(Pair files);
  struct Flags {
    std::size_t field;
    std::uint64_t mask;
  };
  int keep(Flags flags);
  int keep(const ThrottleResidency& residency);
  /// One of several values in a file of lines_file(); `key` must have static storage.
  struct Entry {
    int lines_file;
    std::string_view key;
  };
  int keep(Entry entry);

  // For readers, each pass.

  Sample integer(int file) noexcept { return files_.read(file); }
  sysfs::Bytes text(int text_file, std::span<char> buffer, std::size_t offset = 0) noexcept;
  TextCache::Text lines(int lines_file) noexcept { return lines_.read(lines_file); }
  Entry entry(int handle) const noexcept { return entries_[static_cast<std::size_t>(handle)]; }
  Pair pair(int handle) const noexcept { return pairs_[static_cast<std::size_t>(handle)]; }
  Flags flags(int handle) const noexcept { return flags_[static_cast<std::size_t>(handle)]; }
  ThrottleResidency& residency(int handle) noexcept {
    return residencies_[static_cast<std::size_t>(handle)].current();
  }
  /// True if nothing was observed before this pass.
  bool is_after_gap() const noexcept { return is_after_gap_; }
  /// gpu_metrics, read at the first call of a pass.
  const GpuMetricsBlob& blob() noexcept;

 private:
  void find_topology(const DeviceInfo& info);
  bool may_read(const Pass& pass, const PowerState& state) noexcept;
  bool is_busy() noexcept;
  bool memory_has_changed() noexcept;
  bool has_text(int text_file) noexcept;

  std::string sysfs_root_;
  CardProcesses processes_;
  std::optional<KfdNode> kfd_;
  std::vector<Partition> partitions_;
  std::vector<std::optional<KfdNode>> partition_nodes_;
  std::size_t partition_ = 0;
  AmdPaths paths_;
  FileCache files_;
  std::vector<sysfs::File> texts_;
  TextCache lines_;
  std::vector<Pair> pairs_;
  std::vector<Flags> flags_;
  std::vector<Settled<ThrottleResidency>> residencies_;
  std::vector<Entry> entries_;
  RuntimePower power_;
  SleepPolicy sleep_;
  AmdUsers users_;
  std::optional<int> busy_;         // gpu_busy_percent
  std::optional<int> memory_used_;  // mem_info_vram_used
  double last_memory_used_ = 0;
  sysfs::File blob_file_;
  GpuMetricsBlob blob_;
  Chip chip_ = Chip::other;
  bool blob_is_fresh_ = false;
  bool awake_ = true;
  bool is_after_gap_ = true;
  // Sources that are there but could not be read while rows were bound: they are tried again.
  bool is_bound_asleep_ = false;
  bool is_blob_unread_ = false;
  std::vector<int> unread_texts_;
  bool is_provisional_ = false;
  Nanoseconds look_again_at_{};
};

}  // namespace gpumeter::amd
