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
#include "collectors/amd/events.hpp"
#include "collectors/amd/gpu_metrics.hpp"
#include "collectors/amd/kfd.hpp"
#include "collectors/files/context.hpp"
#include "collectors/sources/sysfs.hpp"

namespace gpumeter::amd {

/// What the configuration asks for.
struct AmdOptions {
  bool each_link = false;                           ///< each xGMI link has its own series
  std::shared_ptr<EventListener> events = nullptr;  ///< null: events are not counted
};

/// The fields of throttlers: the order of their bits is the same for all chips, or the chip's own.
enum class Throttlers : std::uint8_t { independent, of_chip };

/// One card's gpu_metrics, and its part in the compute driver: node, partitions, processes, events. Lane
/// thread.
class AmdCard final : public files::Attached {
 public:
  /// `sysfs_root`: the root of sysfs, with the compute driver's topology.
  AmdCard(std::string sysfs_root, AmdOptions options)
      : sysfs_root_(std::move(sysfs_root)), options_(std::move(options)) {}

  void open(files::Context& context, const DeviceInfo& info, const files::PowerState& state) override;
  void close() noexcept override;
  void begin_pass(const files::PowerState&) noexcept override { blob_is_fresh_ = false; }
  /// A process holds memory through the compute driver, or the video memory in use has changed. Neither needs
  /// a read that wakes the card, so a job is noticed at once.
  bool is_used() noexcept override;
  bool is_busy() noexcept override;
  /// gpu_metrics exists and has no value.
  bool is_unread() noexcept override;
  /// The processes of the compute driver.
  ReadStatus processes(const Pass& pass, std::vector<DeviceProcess>& out) noexcept override;
  std::optional<double> memory_in_use() noexcept override;

  // For readers, at attach.

  Chip chip() const noexcept { return chip_; }
  /// The card's node in the compute driver, with all its partitions combined.
  const std::optional<KfdNode>& kfd() const noexcept { return kfd_; }
  const std::optional<KfdNode>& partition_node(std::size_t partition) const {
    return partition_nodes_[partition];
  }
  std::size_t partition_count() const noexcept { return partition_nodes_.size(); }
  /// True unless the card has no gpu_metrics, or a version that is known to lack the field (or that element
  /// of it, or its unit). For a sleeping card only the former is known.
  bool has_blob_field(std::size_t field, std::size_t element = 0) noexcept;
  bool each_link() const noexcept { return options_.each_link; }
  /// Null: events are not counted, or the card has no compute driver. They outlive the card's readers.
  const std::shared_ptr<const CardEvents>& events() const noexcept { return events_; }

  // For readers, each pass.

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
  void find_memory();
  void find_topology(const DeviceInfo& info);
  bool memory_has_changed() noexcept;

  std::string sysfs_root_;
  AmdOptions options_;
  files::Context* context_ = nullptr;  // of the last open()
  std::string uuid_;
  std::shared_ptr<const CardEvents> events_;
  CardProcesses processes_;
  ComputeUsers users_;
  std::optional<KfdNode> kfd_;
  std::vector<std::optional<KfdNode>> partition_nodes_;
  std::optional<int> busy_;         // gpu_busy_percent
  std::optional<int> memory_used_;  // mem_info_vram_used
  std::optional<int> gtt_used_;     // mem_info_gtt_used, of a GPU that works in the host's memory
  double last_memory_used_ = 0;
  sysfs::File blob_file_;
  GpuMetricsBlob blob_;
  std::array<GpuMetricsBlob::Flags, 2> throttlers_{};  // by Throttlers
  Chip chip_ = Chip::other;
  bool blob_is_fresh_ = false;
};

/// A card of that driver, amdgpu or radeon.
std::unique_ptr<Device> amd_device(const files::Roots& roots, const AmdOptions& options,
                                   std::string_view driver = "amdgpu");

/// The path of the file by a name of the table, for a report.
std::string path_of(const std::string& card_folder, std::string_view name);

/// The tables of cards and of partitions, for the docs.
std::span<const RowDoc> amd_row_docs();

}  // namespace gpumeter::amd
