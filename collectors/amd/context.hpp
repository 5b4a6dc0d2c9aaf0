#pragma once

#include <array>
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
#include "collectors/amd/events/listener.hpp"
#include "collectors/amd/gpu_metrics/blob.hpp"
#include "collectors/amd/kfd/processes.hpp"
#include "collectors/amd/kfd/topology.hpp"
#include "collectors/amd/partitions.hpp"
#include "collectors/amd/paths.hpp"
#include "collectors/amd/users.hpp"
#include "collectors/api/collector.hpp"
#include "collectors/sources/fdinfo/busy_counters.hpp"
#include "collectors/sources/fdinfo/device_watch.hpp"
#include "collectors/sources/fdinfo/processes.hpp"
#include "collectors/sources/file_cache.hpp"
#include "collectors/sources/runtime_power.hpp"
#include "collectors/sources/sleep_policy.hpp"
#include "collectors/sources/sysfs.hpp"
#include "collectors/table/device.hpp"

namespace gpumeter::amd {

/// Reads a text, and opens its file again if an earlier open failed.
inline sysfs::Bytes read_again(sysfs::File& file, std::span<char> buffer, std::size_t offset = 0) noexcept {
  if (file.status() != ReadStatus::ok) file.retry();
  return file.read(buffer, offset);
}

/// What the configuration asks for.
struct AmdOptions {
  bool each_link = false;                           ///< each xGMI link has its own series
  std::shared_ptr<EventListener> events = nullptr;  ///< null: events are not counted
  std::shared_ptr<DrmUsers> drm_users = nullptr;    ///< the machine's DRM clients; null: they are not read
};

/// The fields of throttlers: the order of their bits is the same for all chips, or the chip's own.
enum class Throttlers : std::uint8_t { independent, of_chip };

/// One open card: its files, and the values that this pass has read from them. Readers (readers/) hold
/// references to it and compute values from it. Lane thread.
class AmdContext {
 public:
  AmdContext() = default;
  /// `sysfs_root`: the root of sysfs, with the compute driver's topology.
  explicit AmdContext(std::string sysfs_root, AmdOptions options = {})
      : sysfs_root_(std::move(sysfs_root)), options_(std::move(options)) {}

  /// Opens the card whose PCI function is the folder `info.source`. Returns an Error if it does not exist.
  Result<Done> open(const DeviceInfo& info);

  void close() noexcept;

  /// Returns `asleep` also while the card is not read so that it can fall asleep (SleepPolicy). The card is
  /// in use if a user keeps it awake anyway (AmdUsers), if it is busy at all, or if its video memory in use
  /// has changed. The change is visible without a read that wakes the card, so a job is noticed at once.
  Readiness begin_pass(const Pass& pass) noexcept;

  /// The kernel's power state: false while the card sleeps or is about to, whether this pass reads it or not.
  bool awake() const noexcept { return awake_; }

  /// The card's node in the compute driver, with all its partitions combined.
  const std::optional<KfdNode>& kfd() const noexcept { return kfd_; }

  // For BindsAgain. A sleeping card is not read, so it binds again when it is awake.
  void end_binding();
  bool has_more(Nanoseconds now) noexcept;

  // For KnowsProcesses.

  static constexpr Tier kProcessesTier = Tier::normal;
  /// The processes of the compute driver and the clients of the graphics driver (fdinfo), each process once.
  ReadStatus processes(const Pass& pass, std::vector<DeviceProcess>& out) noexcept;

  // For Divisible: the parts of a divided card, and the part whose rows are bound next.

  std::span<const Partition> partitions() const noexcept { return partitions_; }
  void turn_to(std::size_t partition) noexcept { partition_ = partition; }
  std::size_t partition() const noexcept { return partition_; }
  const std::optional<KfdNode>& partition_node() const { return partition_nodes_[partition_]; }

  // For readers, at attach: handles for names as in AmdPaths; nullopt if the file does not exist.

  std::optional<int> file(std::string_view name);
  std::optional<int> constant_file(std::string_view name);  ///< read once, see FileCache
  std::optional<int> lines_file(std::string_view name);     ///< for several rows each, see TextCache
  /// A file for one row, which owns it; null if it does not exist.
  std::shared_ptr<sysfs::File> text_file(std::string_view name);

  Chip chip() const noexcept { return chip_; }
  /// False for an integrated part without a link. Of a sleeping card nothing is known: true.
  bool has_pcie_link() const noexcept { return has_pcie_link_; }

  /// True unless the card has no gpu_metrics, or a version that is known to lack the field (or that element
  /// of it, or its unit). For a sleeping card only the former is known.
  bool has_blob_field(std::size_t field, std::size_t element = 0) noexcept;

  bool each_link() const noexcept { return options_.each_link; }
  /// Null: events are not counted, or the card has no compute driver. They outlive the card's readers.
  const std::shared_ptr<const CardEvents>& events() const noexcept { return events_; }

  // For readers, each pass.

  Sample integer(int file) noexcept { return files_.read(file); }
  TextCache::Text lines(int lines_file) noexcept { return lines_.read(lines_file); }
  /// True if nothing was observed before this pass.
  bool is_after_gap() const noexcept { return is_after_gap_; }
  /// True if the card's clients are scanned.
  bool has_clients() const noexcept { return static_cast<bool>(clients_); }
  /// Busy time of the card's clients, as of the last scan.
  const fdinfo::BusyCounters& clients() const noexcept { return client_counters_; }
  /// gpu_metrics, read by the first call in a pass.
  const GpuMetricsBlob& blob() noexcept {
    if (!blob_is_fresh_) read_blob();
    return blob_;
  }
  /// The active throttlers of gpu_metrics. 40 rows of a card test them, so each pass looks them up once.
  const GpuMetricsBlob::Flags& throttlers(Throttlers of) noexcept {
    if (!blob_is_fresh_) read_blob();
    return throttlers_[static_cast<std::size_t>(of)];
  }

 private:
  void read_blob() noexcept;
  void find_topology(const DeviceInfo& info);
  void find_clients(const DeviceInfo& info);
  bool may_read(const Pass& pass, const PowerState& state) noexcept;
  bool is_busy() noexcept;
  bool memory_has_changed() noexcept;

  std::optional<double> memory_in_use() noexcept;

  std::string sysfs_root_;
  AmdOptions options_;
  std::string uuid_;
  std::shared_ptr<const CardEvents> events_;
  CardProcesses processes_;
  fdinfo::DeviceWatch clients_;
  fdinfo::ProcessLists client_lists_;
  fdinfo::BusyCounters client_counters_;
  std::optional<KfdNode> kfd_;
  std::vector<Partition> partitions_;
  std::vector<std::optional<KfdNode>> partition_nodes_;
  std::size_t partition_ = 0;
  AmdPaths paths_;
  FileCache files_;
  std::vector<std::shared_ptr<sysfs::File>> texts_;
  TextCache lines_;
  RuntimePower power_;
  SleepPolicy sleep_;
  AmdUsers users_;
  std::optional<int> busy_;         // gpu_busy_percent
  std::optional<int> memory_used_;  // mem_info_vram_used
  std::optional<int> gtt_used_;     // mem_info_gtt_used, of a GPU that works in the host's memory
  double last_memory_used_ = 0;
  sysfs::File blob_file_;
  GpuMetricsBlob blob_;
  std::array<GpuMetricsBlob::Flags, 2> throttlers_{};  // by Throttlers
  Chip chip_ = Chip::other;
  bool blob_is_fresh_ = false;
  bool has_pcie_link_ = true;
  bool awake_ = true;
  bool is_after_gap_ = true;
  // Sources that exist but could not be read during binding are tried again; `texts_` holds only those.
  bool is_bound_asleep_ = false;
  bool is_blob_unread_ = false;
  bool is_provisional_ = false;
  Nanoseconds look_again_at_{};
};

}  // namespace gpumeter::amd
