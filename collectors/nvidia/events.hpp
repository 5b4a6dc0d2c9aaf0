#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "collectors/api/event_source.hpp"
#include "collectors/events/xids.hpp"
#include "collectors/nvidia/nvml/abi.hpp"
#include "collectors/nvidia/nvml/constants.hpp"
#include "collectors/nvidia/operational_events.hpp"

namespace gpumeter::nvidia {

// Events that a GPU's driver reports asynchronously: counted by the event thread, read by the GPU's lane.

using events::kXidNames;
inline constexpr std::size_t kXidPlaces = std::size(kXidNames);

/// The XIDs that a program can cause, and which therefore occur on a MIG instance. Each instance has a series
/// of each from the start; all others count as `other`.
inline constexpr std::string_view kInstanceXidNames[] = {"13", "31", "43", "45",   "68",
                                                         "69", "94", "95", "other"};
inline constexpr std::size_t kInstanceXidPlaces = std::size(kInstanceXidNames);

std::size_t xid_place(std::uint64_t xid) noexcept;

/// Events other than XIDs, in the order of kEvents.
enum class Event : std::uint8_t {
  single_bit_ecc,
  double_bit_ecc,
  ecc_storm,
  dram_retirement,
  dram_retirement_failure,
  poison_nonfatal,
  poison_fatal,
  gpu_unavailable,
  recovery_action,
  mig_config_change,
  bus_lost,
  reset_required,
  returned,
};
inline constexpr std::uint64_t kOwnEvent = 0;
struct EventKind {
  std::string_view name;  ///< value of the label `event`
  std::uint64_t type =
      kOwnEvent;  ///< the bit of nvml::EventType; kOwnEvent: detected by the collector itself
};
inline constexpr EventKind kEvents[] = {
    {"single_bit_ecc", nvml::kEventSingleBitEcc},
    {"double_bit_ecc", nvml::kEventDoubleBitEcc},
    {"ecc_storm", nvml::kEventEccStorm},
    {"dram_retirement", nvml::kEventDramRetirement},
    {"dram_retirement_failure", nvml::kEventDramRetirementFailure},
    {"poison_nonfatal", nvml::kEventPoisonNonFatal},
    {"poison_fatal", nvml::kEventPoisonFatal},
    {"gpu_unavailable", nvml::kEventGpuUnavailable},
    {"recovery_action", nvml::kEventRecoveryAction},
    {"mig_config_change", nvml::kEventMigConfigChange},
    {"bus_lost"},
    {"reset_required"},
    {"returned"},
};
static_assert(std::size(kEvents) == static_cast<std::size_t>(Event::returned) + 1);

/// Returns nullopt for an XID or an event that is not counted.
std::optional<Event> event_of(std::uint64_t type) noexcept;
/// The types of all events for which gpumeter registers.
std::uint64_t heard_types() noexcept;

/// The counts of one GPU. They survive sessions and losses of the GPU. Any thread.
class DeviceEvents {
 public:
  /// `instance`: the GPU instance to which the driver attributes the XID, or nvml::kNoInstance.
  void count_xid(std::uint64_t xid, unsigned instance, Nanoseconds realtime,
                 std::uint64_t times = 1) noexcept;
  /// The same for XIDs that only the kernel's log reports. From then on the counts are known, whatever the
  /// driver reports.
  void count_logged_xid(std::uint64_t xid, unsigned instance, std::uint64_t times,
                        Nanoseconds last) noexcept {
    count_xid(xid, instance, last, times);
    has_log_ = true;
  }
  void count(Event event) noexcept { events_[static_cast<std::size_t>(event)].fetch_add(1); }

  /// Whether the driver reports events of the GPU now. Otherwise its events are not counted.
  enum class Reporting : std::uint8_t {
    not_yet,  ///< the event thread has not registered for them
    on,
    refused,  ///< the driver refuses every registration
  };
  void set_reporting(Reporting reporting) noexcept { reporting_ = reporting; }
  Reporting reporting() const noexcept { return reporting_; }
  bool is_reported() const noexcept { return reporting_ == Reporting::on; }
  /// The driver or the kernel's log reports XIDs.
  bool counts_xids() const noexcept { return is_reported() || has_log_; }

  /// Called after the GPU was divided again: NVML gives the ids of old instances to new ones.
  void forget_instances() noexcept;

  /// Counted by the listener to operational events; the XIDs that they name are counted here.
  OperationalCounts& operational() noexcept { return operational_; }
  const OperationalCounts& operational() const noexcept { return operational_; }

  std::uint64_t xids(std::size_t place) const noexcept { return xids_[place]; }
  /// `place` is an index into kInstanceXidNames.
  std::uint64_t xids_of(unsigned instance, std::size_t place) const noexcept;
  std::uint64_t events(std::size_t place) const noexcept { return events_[place]; }
  std::uint64_t count_of(Event event) const noexcept { return events_[static_cast<std::size_t>(event)]; }
  /// Unix time in seconds; 0: never.
  double last(std::size_t place) const noexcept { return last_[place]; }

 private:
  std::array<std::atomic<std::uint64_t>, kXidPlaces> xids_{};
  std::array<std::atomic<double>, kXidPlaces> last_{};
  std::array<std::atomic<std::uint64_t>, std::size(kEvents)> events_{};
  static constexpr std::size_t kInstances = 16;  // ids are 0 to 14 on cards with seven instances
  std::array<std::array<std::atomic<std::uint64_t>, kInstanceXidPlaces>, kInstances> instance_xids_{};
  std::atomic<Reporting> reporting_{Reporting::not_yet};
  OperationalCounts operational_;
  std::atomic<bool> has_log_{false};
};

/// Whether the library has the functions for events.
bool has_events(const NvmlFunctions& nvml) noexcept;

/// The event set of a session. Lanes add the GPUs to listen to. Only the event thread touches the set, so the
/// set is never freed during a wait.
class EventListener {
 public:
  explicit EventListener(const NvmlFunctions& functions) : nvml_(functions) {}
  /// Runs with the last user of the session, so no thread is waiting.
  ~EventListener();
  EventListener(const EventListener&) = delete;
  EventListener& operator=(const EventListener&) = delete;

  struct Source {
    nvml::Device device;
    std::uint64_t types;  ///< bits of nvml::EventType
    std::string uuid;
    std::shared_ptr<DeviceEvents> events;
    LoggedGpu logged{};
  };
  /// Events of the GPU are counted from the next wait on. Any thread.
  void listen(Source source) GPUMETER_EXCLUDES(mutex_);

  /// Called when the GPU is lost or closed: the next set does not contain it. Any thread.
  void forget(nvml::Device device) GPUMETER_EXCLUDES(mutex_);

  struct Outcome {
    unsigned result;                  ///< return code of the wait: TIMEOUT if no event occurred
    std::vector<DeviceEvent> events;  ///< includes a GPU's first failed registration, for the log
  };
  /// Event thread. Blocks in the driver for `at_most`.
  Outcome wait(Nanoseconds at_most, const Clock& clock) GPUMETER_EXCLUDES(mutex_);

 private:
  struct Listened : Source {
    bool is_registered;
  };
  static void stop(Listened& one);
  bool register_new(const Clock& clock, std::vector<DeviceEvent>& events) GPUMETER_EXCLUDES(mutex_);
  void note(const Listened& one, unsigned result, std::vector<DeviceEvent>& events) GPUMETER_EXCLUDES(mutex_);
  void start_anew() GPUMETER_EXCLUDES(mutex_);
  std::optional<DeviceEvent> take(const nvml::EventData& data, const Clock& clock) GPUMETER_EXCLUDES(mutex_);

  const NvmlFunctions& nvml_;
  nvml::EventSet set_ = nullptr;  // event thread
  Nanoseconds try_again_at_{};    // event thread; CLOCK_MONOTONIC
  Mutex mutex_;
  Condition changed_;
  std::vector<Listened> listened_ GPUMETER_GUARDED_BY(mutex_);
};

}  // namespace gpumeter::nvidia
