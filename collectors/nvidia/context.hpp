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
#include "collectors/nvidia/readers/growth.hpp"
#include "collectors/nvidia/readers/peaks.hpp"
#include "collectors/nvidia/readers/sample_buffer.hpp"
#include "collectors/nvidia/readers/unsettled_sources.hpp"
#include "collectors/table/device.hpp"
#include "collectors/table/settled.hpp"

namespace gpumeter::nvidia {

/// What the config says of the collector.
struct NvidiaOptions {
  std::string library;     ///< path or file name of NVML
  bool each_link = false;  ///< NVLink's links one by one, beside their sums
};

/// One GPU as its rows read it: NVML's handle, and what this pass has asked already. Readers
/// (nvidia_readers.hpp) turn it into values. Lane thread.
class NvidiaContext {
 public:
  explicit NvidiaContext(NvidiaOptions options) : options_(std::move(options)) {}

  /// Takes hold of the GPU with the uuid of `info`. An Error: it is not there, or NVML is not.
  Result<Done> open(const DeviceInfo& info);
  void close() noexcept;

  /// Lets go of everything where the GPU is lost, so that the driver can be unloaded, and says `gone`.
  Readiness begin_pass(const Pass& pass) noexcept;

  // For SettlesPasses.
  void settle(const Pass& pass, bool is_observed) noexcept;

  // For Divisible: MIG instances.

  std::span<const Partition> partitions() const noexcept { return partitions_; }
  void turn_to(std::size_t partition) noexcept { turned_to_ = partition + 1; }

  // For BindsAgain: what could not be read at attach, and a fabric that was registered with since.

  void end_binding() noexcept {}
  bool has_more(Nanoseconds now) noexcept;

  // For DescribesItself: gpu_fabric_info.

  std::vector<SeriesSpec> info_series();

  // For KnowsProcesses.

  /// A list took up to 4.5 ms on some cards, too long for each second.
  static constexpr Tier kProcessesTier = Tier::normal;
  ReadStatus processes(const Pass& pass, std::vector<DeviceProcess>& out) noexcept {
    return processes_.read(pass, out);
  }

  // For readers, at attach.

  /// What rows that are bound now are about: the GPU, or the instance that was turned to.
  NvmlTarget& target() noexcept { return targets_[turned_to_]; }
  std::span<const Peak> peaks() const noexcept { return peaks_; }
  std::optional<double> peak_bandwidth() const noexcept { return peak_bandwidth_; }
  std::uint64_t event_types() const noexcept { return event_types_; }  ///< of nvml::EventType, that are heard
  struct OpenedBuffer {
    ReadStatus status;
    int place;  ///< for buffer()
  };
  OpenedBuffer buffer_of(nvml::SamplingType type);
  UnsettledSources& unsettled() noexcept { return unsettled_; }
  UnsettledSources::Key key_of(const ReadSource& source) const noexcept {
    return {source.name.data(), source.argument, turned_to_};
  }

  /// A handle for read(): the present target, and a number or two of the row's own.
  struct Bound {
    std::size_t target;
    std::uint64_t argument;
    int place;
  };
  int keep(std::uint64_t argument, int place = 0);
  /// A counter that a reader makes up itself, from what it sees in each pass.
  struct Tally {
    double total = 0;
    std::uint64_t pass = 0;          ///< the pass it was last brought up to
    std::array<Growth, 2> growth{};  ///< of what it is made from

    void restart() noexcept {
      for (Growth& each : growth) each.restart();
    }
  };
  int keep_tally();

  // For readers, each pass.

  const Bound& bound(int handle) const noexcept { return bound_[static_cast<std::size_t>(handle)]; }
  NvmlTarget& target(const Bound& bound) noexcept { return targets_[bound.target]; }
  NvmlTarget& gpu() noexcept { return targets_.front(); }
  FieldBatch& fields(Tier tier) noexcept { return fields_[static_cast<std::size_t>(tier)]; }
  SampleBuffer& buffer(int place) noexcept { return buffers_[static_cast<std::size_t>(place)]; }
  Tally& tally(std::uint64_t place) noexcept { return tallies_[place].current(); }
  /// Bits of nvml::EventReason, by whichever call the library has.
  Sample event_reasons() noexcept;
  /// A count of PCIe bytes was seen that 32 bits cannot hold.
  void note_wide_bytes() noexcept { has_wide_bytes_ = true; }
  bool has_wide_bytes() const noexcept { return has_wide_bytes_; }
  void note_fabric(const nvml::FabricInfoV3& info) noexcept;
  const DeviceEvents& events() const noexcept { return *events_; }
  /// Observed time of this pass; zero after a gap.
  Nanoseconds elapsed() const noexcept { return elapsed_; }
  Nanoseconds now() const noexcept { return now_; }
  std::uint64_t pass() const noexcept { return pass_; }

 private:
  /// The fabric that the GPU is registered with.
  struct Fabric {
    unsigned clique;
    std::array<unsigned char, 16> cluster;  ///< UUID; zero: none
    bool operator==(const Fabric&) const = default;
  };

  bool is_lost() const noexcept;
  void close_sources() noexcept;
  void listen(const std::string& uuid);
  void stop_listening() noexcept;
  bool opens_well();
  bool has_new_partitions() noexcept;
  void note_loss() noexcept;
  void open_partitions();
  void find_peaks();

  NvidiaOptions options_;
  std::shared_ptr<DeviceEvents> events_ = std::make_shared<DeviceEvents>();
  GpuProcesses processes_;
  std::uint64_t event_types_ = 0;
  std::weak_ptr<NvmlSession> listened_session_;  // where event_types_ of listened_device_ are listened to
  nvml::Device listened_device_ = nullptr;
  std::uint64_t listened_types_ = 0;
  UnsettledSources unsettled_;
  bool is_open_troubled_ = false;  // a call of open() failed in a way that may pass
  bool has_wide_bytes_ = false;
  std::optional<Fabric> fabric_;        // as of the last reading
  std::optional<Fabric> shown_fabric_;  // as info_series() had it
  bool was_lost_ = false;
  bool was_divided_anew_ = false;
  std::deque<NvmlTarget> targets_;  // the GPU, then its MIG instances
  std::size_t turned_to_ = 0;
  std::vector<Partition> partitions_;
  std::string mig_fingerprint_;
  std::vector<Peak> peaks_;
  std::optional<double> peak_bandwidth_;
  std::array<FieldBatch, kTiers.size()> fields_;
  std::vector<SampleBuffer> buffers_;
  std::vector<Bound> bound_;
  std::vector<Settled<Tally>> tallies_;
  Nanoseconds now_{};
  Nanoseconds elapsed_{};
  std::uint64_t pass_ = 0;
};

}  // namespace gpumeter::nvidia
