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

#include "collectors/amd/events.hpp"
#include "collectors/amd/gpu_metrics.hpp"
#include "collectors/amd/kfd.hpp"
#include "collectors/files/context.hpp"
#include "collectors/files/readers.hpp"
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

// The sources of rows that only AMD's cards have: gpu_metrics, texts of amdgpu, facts of the compute driver.
// Names of files are as in files::Paths. A field of gpu_metrics binds by its version alone, since some
// firmware returns 0 at first and values later.

using files::Row;
using files::Source;

/// A power, except the 0 of MI200's second die: the first die measures both (kernel 6.12, aldebaran_ppt.c).
Reader power(files::Context& context, const ReadSource& source);

/// A percentage that the firmware sometimes overshoots at full load.
Reader busy(files::Context& context, const ReadSource& source);

/// A Peak of the card, from the compute driver's topology; that of a partition; and the partition's memory.
Reader peak(files::Context& context, const ReadSource& source);
Reader part_peak(files::Context& context, const ReadSource& source);
Reader part_memory(files::Context& context, const ReadSource& source);

/// Number of links in one of the states whose bits are set: 0b10 for up (1).
Reader xgmi_links(files::Context& context, const ReadSource& source);

/// Memory traffic relative to its maximum. From 1.4 on average_umc_activity has this meaning: the firmware's
/// DramBandwidthUtilization (kernel 6.12, smu_v13_0_6_ppt.c). In earlier versions it is busy time.
Reader dram_bandwidth(files::Context& context, const ReadSource& source);

/// The accumulator in joules, if its unit is known and it is not stuck at 0.
Reader blob_energy(files::Context& context, const ReadSource& source);

/// 1 while any of these chip-independent throttler bits is set. Versions without those bits are read through
/// the chip's own bits, if these are known.
Reader throttle(files::Context& context, const ReadSource& source);

/// Seconds by the counters of the firmware's cycles, "gpu_metrics.a | gpu_metrics.b"; see Residency. The
/// number is the die, for fields that have one element for each.
Reader residency(files::Context& context, const ReadSource& source);

/// The same of the busiest die of a partition. As in the gauge, each partition has the same number of dies.
Reader part_busy(files::Context& context, const ReadSource& source);

/// Events of a kind, by place in kEvents; `unsupported` while the driver does not report any.
Reader event_count(files::Context& context, const ReadSource& source);

/// A severity counted in ras/<block>_err_count: the driver's name and gpumeter's.
struct RasSeverity {
  std::string_view key;
  std::string_view severity;
};
inline constexpr RasSeverity kRasSeverities[] = {
    {"ce", "corrected"}, {"ue", "uncorrected"}, {"de", "deferred"}};

/// Errors of one severity, by index into kRasSeverities, of "ras/<block>_err_count".
Reader ras_count(files::Context& context, const ReadSource& source);

/// The highest clock in MHz, and the present one, from a pp_dpm_* file.
Reader clock_limit(files::Context& context, const ReadSource& source);
Reader clock_level(files::Context& context, const ReadSource& source);

/// The card's links to all others, from xgmi_num_links.
Reader links(files::Context& context, const ReadSource& source);

/// The number of pages that the driver has retired (flag R), from ras/gpu_vram_bad_pages. Pages that wait for
/// retirement (P), and pages that could not be retired because they are in use (F), do not count.
Reader bad_pages(files::Context& context, const ReadSource& source);

/// A state of a mode, and the word for it in the mode's file. `wakes`: reading the file wakes a sleeping
/// card.
struct Mode {
  std::string_view mode, file, word, state;
  bool wakes;
};

// clang-format off
inline constexpr Mode kModes[] = {
    {"compute_partition", "current_compute_partition", "SPX", "spx", false},
    {"compute_partition", "current_compute_partition", "DPX", "dpx", false},
    {"compute_partition", "current_compute_partition", "TPX", "tpx", false},
    {"compute_partition", "current_compute_partition", "QPX", "qpx", false},
    {"compute_partition", "current_compute_partition", "CPX", "cpx", false},
    {"memory_partition", "current_memory_partition", "NPS1", "nps1", false},
    {"memory_partition", "current_memory_partition", "NPS2", "nps2", false},
    {"memory_partition", "current_memory_partition", "NPS4", "nps4", false},
    {"memory_partition", "current_memory_partition", "NPS8", "nps8", false},
    // AMD has no numbered performance state. A card stays slow permanently only through a level that was
    // set by hand.
    {"performance_level", "power_dpm_force_performance_level", "auto", "auto", true},
    {"performance_level", "power_dpm_force_performance_level", "low", "low", true},
    {"performance_level", "power_dpm_force_performance_level", "high", "high", true},
    {"performance_level", "power_dpm_force_performance_level", "manual", "manual", true},
    {"performance_level", "power_dpm_force_performance_level", "profile_standard", "profile_standard", true},
    {"performance_level", "power_dpm_force_performance_level", "profile_min_sclk", "profile_min_sclk", true},
    {"performance_level", "power_dpm_force_performance_level", "profile_min_mclk", "profile_min_mclk", true},
    {"performance_level", "power_dpm_force_performance_level", "profile_peak", "profile_peak", true},
    {"performance_level", "power_dpm_force_performance_level", "perf_determinism", "perf_determinism", true},
};
// clang-format on

/// 1 while the mode at that index in kModes is active.
Reader mode(files::Context& context, const ReadSource& source);

// Fields of gpu_metrics, whose names are checked by the compiler.

namespace readers {

Reader blob(files::Context& context, const ReadSource& source);
Reader counter(files::Context& context, const ReadSource& source);
Reader highest(files::Context& context, const ReadSource& source);
Reader part_highest(files::Context& context, const ReadSource& source);
Reader either(files::Context& context, const ReadSource& source);
Reader link_counter(files::Context& context, const ReadSource& source);
Reader link_status(files::Context& context, const ReadSource& source);

inline constexpr std::string_view kBlobPrefix = "gpu_metrics.";

/// A field, and an element of it in the bits above: 0 for the first available element, otherwise its index +
/// 1.
struct BlobElement {
  static constexpr int kFieldBits = 16;
  static constexpr int kFieldMask = (1 << kFieldBits) - 1;

  std::size_t field;
  std::size_t element;

  static constexpr BlobElement of(std::uint64_t argument) noexcept {
    return {argument & kFieldMask, argument >> kFieldBits};
  }
};

consteval std::size_t field_of(std::string_view name) {
  if (!name.starts_with(kBlobPrefix)) throw name;
  return known_blob_field(name.substr(kBlobPrefix.size()));
}

/// "gpu_metrics.temperature_hbm[3]", or without an index.
consteval std::uint64_t element_of(std::string_view name) {
  const std::size_t bracket = name.find('[');
  const std::uint64_t field = field_of(name.substr(0, bracket));
  if (bracket == std::string_view::npos) return field;
  const auto index = static_cast<std::uint64_t>(name.at(bracket + 1) - '0');
  return name.at(bracket + 2) == ']' && index < 10 ? field | (index + 1) << BlobElement::kFieldBits
                                                   : throw name;
}

/// Both fields of "gpu_metrics.a | gpu_metrics.b".
consteval std::uint64_t either_of(std::string_view names) {
  constexpr std::string_view kBar = " | ";
  const std::size_t bar = names.find(kBar);
  const std::uint64_t second = field_of(names.substr(bar + kBar.size()));
  return field_of(names.substr(0, bar)) | second << BlobElement::kFieldBits;
}

}  // namespace readers

/// A field in base units: "gpu_metrics.voltage_soc". For an array, the named element
/// ("gpu_metrics.temperature_hbm[3]") or the first available one: the first die's clock stands for all.
consteval Source blob(std::string_view name) { return {readers::blob, name, readers::element_of(name)}; }

/// "a | b": b if a is not filled.
consteval Source blob_either(std::string_view names) {
  return {readers::either, names, readers::either_of(names)};
}

/// A counter of the hardware; for an array, the sum of all elements. Binds only while the card is awake,
/// since a sleeping card does not show whether it counts.
consteval Source blob_counter(std::string_view name) {
  return {readers::counter, name, readers::field_of(name)};
}

/// The highest element of an array, over all partitions.
consteval Source blob_highest(std::string_view name) {
  return {readers::highest, name, readers::field_of(name)};
}

/// The highest of the partition's elements.
consteval Source part_highest(std::string_view name) {
  return {readers::part_highest, name, readers::field_of(name)};
}

/// A link's counter: "gpu_metrics.xgmi_read_data_acc[3]". Binds like blob_counter().
consteval Source link_counter(std::string_view name) {
  return {readers::link_counter, name, readers::element_of(name)};
}

/// 1 while the link is up. Not bound if the link is not present (2).
consteval Source link_status(std::string_view name) {
  return {readers::link_status, name, readers::element_of(name)};
}

// Parsers of these texts; they accept any text.

/// The highest frequency of a pp_dpm_* file, in MHz. Its lines are "1: 2450Mhz *", with a mark at the level
/// in force. In deep sleep the driver adds a line "S: 19Mhz *". nullopt: the file has no level.
std::optional<double> highest_level(std::string_view text) noexcept;

/// The marked level. If several are marked, their frequencies are nearly equal; the first is returned.
/// nullopt: none is marked, as between two levels.
std::optional<double> current_level(std::string_view text) noexcept;

/// The sum of xgmi_num_links, the number of links to each GPU of the hive, in hexadecimal: "00 02 01 "
/// (kernel 6.12, amdgpu_xgmi.c). nullopt: the text has a different form.
std::optional<double> sum_of_links(std::string_view text) noexcept;

}  // namespace gpumeter::amd
