#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "collectors/api/collector.hpp"
#include "collectors/nvidia/dcgm.hpp"
#include "collectors/nvidia/events.hpp"
#include "collectors/nvidia/identity.hpp"
#include "collectors/nvidia/links.hpp"
#include "collectors/nvidia/nvml/session.hpp"
#include "collectors/nvidia/processes.hpp"
#include "collectors/nvidia/sources.hpp"
#include "collectors/sources/host.hpp"
#include "collectors/table/device.hpp"

namespace gpumeter::nvidia {

namespace detail {
template <class Struct>
Struct filled_by(unsigned (*)(nvml::Device, Struct*));
}  // namespace detail

/// The struct that Function(device, &struct) fills.
template <auto Function>
using FilledBy = decltype(detail::filled_by(std::declval<NvmlFunctions&>().*Function));

/// One function's answer in this pass, shared by all rows that need a part of it.
class AnswerBase {
 public:
  virtual ~AnswerBase() = default;
  void begin_pass() noexcept { is_fresh_ = false; }

 protected:
  bool is_fresh_ = false;
};

/// The struct that Function(device, &struct) fills.
template <auto Function>
class Answer final : public AnswerBase {
 public:
  using Struct = FilledBy<Function>;
  explicit Answer(NvmlCaller& caller) : caller_(caller) {}

  /// Calls once a pass. The struct holds only if status_of(result()) is ok.
  const Struct& ask() noexcept {
    if (std::exchange(is_fresh_, true)) return value_;
    call();
    if constexpr (requires { Struct::kFormerVersion; }) {
      const bool is_too_new = !is_former_ && result_ == nvml::kArgumentVersionMismatch;
      is_former_ = is_former_ || is_too_new;
      if (is_too_new) call();
    }
    return value_;
  }
  unsigned result() const noexcept { return result_; }

 private:
  void call() noexcept {
    value_ = Struct{};
    if constexpr (requires { Struct::kFormerVersion; }) {
      if (is_former_) value_.version = Struct::kFormerVersion;
    }
    result_ = caller_.call<Function>(&value_);
  }

  NvmlCaller& caller_;
  Struct value_{};
  unsigned result_ = nvml::kNotReady;
  bool is_former_ = false;  // the library rejects the present version
};

/// The object of NVML's calls: a GPU, or a MIG instance of one. Readers hold references to it, so it does not
/// move while the GPU is open. Lane thread.
class NvmlTarget {
 public:
  explicit NvmlTarget(NvmlCaller of, std::optional<unsigned> instance = std::nullopt)
      : caller(std::move(of)), gpu_instance(instance) {}
  NvmlTarget(const NvmlTarget&) = delete;
  NvmlTarget& operator=(const NvmlTarget&) = delete;

  NvmlCaller caller;
  GpmSampler gpm;
  std::optional<unsigned> gpu_instance;  ///< set for a MIG instance

  /// At attach: returns the one Answer of a function, created by the first call.
  template <auto Function>
  Answer<Function>& answer() {
    for (const std::unique_ptr<AnswerBase>& known : answers_) {
      if (auto* const found = dynamic_cast<Answer<Function>*>(known.get())) return *found;
    }
    auto fresh = std::make_unique<Answer<Function>>(caller);
    Answer<Function>& result = *fresh;
    answers_.push_back(std::move(fresh));
    return result;
  }

  void begin_pass() noexcept {
    gpm.begin_pass();
    for (const std::unique_ptr<AnswerBase>& answer : answers_) answer->begin_pass();
  }

  bool is_lost() const noexcept { return caller.is_lost() || gpm.caller().is_lost(); }
  /// As NvmlCaller::lost_by().
  unsigned lost_by() const noexcept {
    return caller.lost_by() != nvml::kSuccess ? caller.lost_by() : gpm.caller().lost_by();
  }

 private:
  std::vector<std::unique_ptr<AnswerBase>> answers_;
};

/// The collector's configuration.
struct NvidiaOptions {
  std::string library;     ///< path or file name of NVML
  bool each_link = false;  ///< series of each NVLink, in addition to the sums and those of the worst
  std::string procfs{};    ///< "/proc", for the host's memory if the GPU has none of its own
  std::shared_ptr<EventLedger> ledger{};  ///< of the events of all sources; null: none
  std::weak_ptr<Dcgm> dcgm{};             ///< for GPUs without performance metrics of NVML; the collector's
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

  // For BindsAgain: sources that could not be read at attach, a fabric that has registered since then, links
  // that have something to say since then, and cycles whose unit is known since then.

  void end_binding() noexcept {}
  bool has_more(Nanoseconds now) noexcept;

  // For DescribesItself: gpu_fabric_info, gpu_platform_info, gpu_inventory_info.

  std::vector<SeriesSpec> info_series();

  // For CountsKinds: gpu_operational_events_total.

  std::vector<SeriesSpec> counted_series();
  void set_counts(std::size_t first, SampleSink& sink) const noexcept {
    events_->operational().write(first, shown_kinds_, sink);
  }

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
  const PowerSensors& sensors() const noexcept { return sensors_; }
  std::optional<double> peak_clock() const noexcept { return peak_clock_; }
  double multiprocessors() const noexcept { return multiprocessors_; }  ///< 0: unknown
  /// GPM's counts for one cycle of the GPU's clock; 0 until note_cycle_unit().
  double cycle_unit() const noexcept { return cycle_unit_; }
  /// The host's memory, if it is the GPU's too (integrated GPUs: GB10, Thor); null if the GPU has its own.
  HostMemoryFile* unified_memory() noexcept { return unified_memory_ ? &*unified_memory_ : nullptr; }
  std::uint64_t event_types() const noexcept {
    return event_types_;
  }  ///< bits of nvml::EventType that are listened to
  NvLinks& links() noexcept { return links_; }
  /// Whether every link has all series.
  bool has_each_link() const noexcept { return options_.each_link; }
  /// DCGM's values of the GPU; null: it is off, or NVML has performance metrics.
  const DcgmGpu* dcgm() const noexcept { return dcgm_.get(); }
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
  void note_cycle_unit(double counts) noexcept { cycle_unit_ = counts; }

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
  void count_logged_xids();
  void stop_listening() noexcept;
  bool opens_well();
  bool has_new_partitions() noexcept;
  void note_loss() noexcept;
  void open_partitions();
  void find_constants(std::string_view driver);
  void find_unified_memory(const DeviceInfo& info);
  bool was_told_of_new_partitions() noexcept;

  NvidiaOptions options_;
  std::shared_ptr<DeviceEvents> events_ = std::make_shared<DeviceEvents>();
  std::string pci_address_;
  GpuProcesses processes_;
  std::uint64_t event_types_ = 0;
  std::weak_ptr<NvmlSession>
      listened_session_;  // the session that listens to event_types_ of listened_device_
  nvml::Device listened_device_ = nullptr;
  std::uint64_t listened_types_ = 0;
  UnsettledSources unsettled_;
  NvLinks links_;
  bool is_open_troubled_ = false;  // a call of open() failed in a way that may pass
  bool has_wide_bytes_ = false;
  std::optional<Fabric> fabric_;        // as of the last reading
  std::optional<Fabric> shown_fabric_;  // as returned by info_series()
  std::size_t shown_kinds_ = 0;         // of operational events, likewise
  bool was_lost_ = false;
  bool was_divided_anew_ = false;
  std::uint64_t mig_changes_ = 0;  // events of a changed division that were handled
  std::optional<HostMemoryFile> unified_memory_;
  std::shared_ptr<DcgmGpu> dcgm_;
  std::vector<Label> platform_;     // labels of gpu_platform_info; empty: unknown
  std::vector<Label> inventory_;    // likewise of gpu_inventory_info
  std::deque<NvmlTarget> targets_;  // the GPU, then its MIG instances
  std::size_t turned_to_ = 0;
  std::vector<Partition> partitions_;
  std::string mig_fingerprint_;
  std::vector<Peak> peaks_;
  std::optional<double> peak_bandwidth_, peak_clock_;
  double multiprocessors_ = 0;
  double cycle_unit_ = 0;
  double bound_cycle_unit_ = 0;  // as of the last open()
  PowerSensors sensors_;
  std::array<FieldBatch, kTiers.size()> fields_;
  std::vector<std::shared_ptr<SampleBuffer>> buffers_;
  Nanoseconds now_{};
  Nanoseconds elapsed_{};
  std::uint64_t pass_ = 0;
};

}  // namespace gpumeter::nvidia
