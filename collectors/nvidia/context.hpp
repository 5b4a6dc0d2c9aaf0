#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "collectors/api/collector.hpp"
#include "collectors/nvidia/device_events.hpp"
#include "collectors/nvidia/mig_instances.hpp"
#include "collectors/nvidia/nvml/target.hpp"
#include "collectors/nvidia/processes/gpu_processes.hpp"
#include "collectors/nvidia/readers/field_batch.hpp"
#include "collectors/nvidia/readers/peaks.hpp"
#include "collectors/nvidia/readers/sample_buffer.hpp"
#include "collectors/nvidia/readers/unified_memory.hpp"
#include "collectors/nvidia/readers/unsettled_sources.hpp"
#include "collectors/table/device.hpp"

namespace gpumeter::nvidia {

/// The collector's configuration.
struct NvidiaOptions {
  std::string library;     ///< path or file name of NVML
  bool each_link = false;  ///< each NVLink by itself, in addition to the sums
  std::string procfs{};    ///< "/proc", for the host's memory if the GPU has none of its own
};

/// One open GPU: NVML's handles, and the results of this pass. Readers (readers/) hold references to it and
/// compute values from it. Lane thread.
class NvidiaContext {
 public:
  explicit NvidiaContext(NvidiaOptions options) : options_(std::move(options)) {}

  /// Opens the GPU with the uuid of `info`. Returns an Error if the GPU or NVML is missing.
  Result<Done> open(const DeviceInfo& info);
  void close() noexcept;

  /// If the GPU is lost, closes everything, so that the driver can be unloaded, and returns `gone`.
  Readiness begin_pass(const Pass& pass) noexcept;

  // For Divisible: MIG instances.

  std::span<const Partition> partitions() const noexcept { return partitions_; }
  void turn_to(std::size_t partition) noexcept { turned_to_ = partition + 1; }

  // For BindsAgain: sources that could not be read at attach, and a fabric that has registered since then.

  void end_binding() noexcept {}
  bool has_more(Nanoseconds now) noexcept;

  // For DescribesItself: gpu_fabric_info, gpu_platform_info.

  std::vector<SeriesSpec> info_series();

  // For KnowsProcesses.

  /// On some cards the process list took up to 4.5 ms, too long for every second.
  static constexpr Tier kProcessesTier = Tier::normal;
  ReadStatus processes(const Pass& pass, std::vector<DeviceProcess>& out) noexcept {
    return processes_.read(pass, out);
  }

  // For readers, at attach.

  /// The target of the rows that are bound now: the GPU, or the instance selected by turn_to().
  NvmlTarget& target() noexcept { return targets_[turned_to_]; }
  NvmlTarget& gpu() noexcept { return targets_.front(); }
  FieldBatch& fields(Tier tier) noexcept { return fields_[static_cast<std::size_t>(tier)]; }
  std::span<const Peak> peaks() const noexcept { return peaks_; }
  std::optional<double> peak_bandwidth() const noexcept { return peak_bandwidth_; }
  /// The host's memory, if it is the GPU's too (integrated GPUs: GB10, Thor); null if the GPU has its own.
  UnifiedMemory* unified_memory() noexcept { return unified_memory_ ? &*unified_memory_ : nullptr; }
  std::uint64_t event_types() const noexcept {
    return event_types_;
  }  ///< bits of nvml::EventType that are listened to
  const DeviceEvents& events() const noexcept { return *events_; }
  struct OpenedBuffer {
    std::shared_ptr<SampleBuffer>
        buffer;  ///< shared by the readers of its figures; null unless `status` is ok
    ReadStatus status;
  };
  OpenedBuffer buffer_of(nvml::SamplingType type);
  UnsettledSources& unsettled() noexcept { return unsettled_; }
  UnsettledSources::Key key_of(const ReadSource& source) const noexcept {
    return {source.name.data(), source.argument, turned_to_};
  }

  // For readers, each pass.

  Nanoseconds now() const noexcept { return now_; }
  /// Observed time of this pass; zero after a gap.
  Nanoseconds elapsed() const noexcept { return elapsed_; }
  std::uint64_t pass() const noexcept { return pass_; }
  /// Records that a count of PCIe bytes exceeded 32 bits.
  void note_wide_bytes() noexcept { has_wide_bytes_ = true; }
  bool has_wide_bytes() const noexcept { return has_wide_bytes_; }
  void note_fabric(const nvml::FabricInfoV3& info) noexcept;

 private:
  /// The fabric in which the GPU is registered.
  struct Fabric {
    unsigned clique;
    std::array<unsigned char, 16> cluster;  ///< UUID; zero: none
    bool operator==(const Fabric&) const = default;
  };

  std::vector<SeriesSpec> fabric_series();
  bool is_lost() const noexcept;
  void close_sources() noexcept;
  void listen(const std::string& uuid);
  void stop_listening() noexcept;
  bool opens_well();
  bool has_new_partitions() noexcept;
  void note_loss() noexcept;
  void open_partitions();
  void find_peaks();
  void find_unified_memory(const DeviceInfo& info);
  bool was_told_of_new_partitions() noexcept;

  NvidiaOptions options_;
  std::shared_ptr<DeviceEvents> events_ = std::make_shared<DeviceEvents>();
  GpuProcesses processes_;
  std::uint64_t event_types_ = 0;
  std::weak_ptr<NvmlSession>
      listened_session_;  // the session that listens to event_types_ of listened_device_
  nvml::Device listened_device_ = nullptr;
  std::uint64_t listened_types_ = 0;
  UnsettledSources unsettled_;
  bool is_open_troubled_ = false;  // a call of open() failed in a way that may pass
  bool has_wide_bytes_ = false;
  std::optional<Fabric> fabric_;        // as of the last reading
  std::optional<Fabric> shown_fabric_;  // as returned by info_series()
  bool was_lost_ = false;
  bool was_divided_anew_ = false;
  std::uint64_t mig_changes_ = 0;  // events of a changed division that were handled
  std::optional<UnifiedMemory> unified_memory_;
  std::vector<Label> platform_;     // labels of gpu_platform_info; empty: unknown
  std::deque<NvmlTarget> targets_;  // the GPU, then its MIG instances
  std::size_t turned_to_ = 0;
  std::vector<Partition> partitions_;
  std::string mig_fingerprint_;
  std::vector<Peak> peaks_;
  std::optional<double> peak_bandwidth_;
  std::array<FieldBatch, kTiers.size()> fields_;
  std::vector<std::shared_ptr<SampleBuffer>> buffers_;
  Nanoseconds now_{};
  Nanoseconds elapsed_{};
  std::uint64_t pass_ = 0;
};

}  // namespace gpumeter::nvidia
