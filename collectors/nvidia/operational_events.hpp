#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/mutex.hpp"
#include "collectors/api/event_source.hpp"
#include "collectors/api/sample.hpp"
#include "collectors/nvidia/nvml/abi.hpp"

namespace gpumeter {
class EventLedger;
}

namespace gpumeter::nvidia {

/// A GPU in the ledger of all sources' events.
struct LoggedGpu {
  std::string pci_address{};
  std::shared_ptr<EventLedger> ledger{};  ///< null: every event counts

  /// Tells the ledger of an event. Returns false if the kernel's log has reported it.
  bool is_news(std::string kind, std::optional<std::uint64_t> code, unsigned instance, const Clock& clock,
               std::string text = {}) const;
};

// GPU Operational Events: structured records of drivers from branch 615 on, next to XIDs and the other event
// bits. NVIDIA calls the interface a preview: modules and codes may change between branches, while XIDs
// remain. They are therefore counted by the driver's own words, and judged by the XID that a record names.

/// Sources that may report the same XID.
enum class XidSource : std::uint8_t { event_bit, operational_event };

/// Events of one kind: the values of its labels.
struct OperationalKind {
  std::string module;    ///< "GPU-RAS"
  std::string code;      ///< "0x0016", as NVIDIA's catalogue writes it
  std::string severity;  ///< NVML's word; simulated: of a test of the driver; other: unknown to this version

  bool operator==(const OperationalKind&) const = default;
};

/// One GPU's counts of operational events. They survive sessions and losses of the GPU. Any thread.
class OperationalCounts {
 public:
  /// Kinds that have a count of their own. The module and code of all further ones are `other`.
  static constexpr std::size_t kMostKinds = 64;

  void count(OperationalKind kind) GPUMETER_EXCLUDES(mutex_);
  void count_overflow() GPUMETER_EXCLUDES(mutex_);

  /// Whether the driver reports operational events of the GPU now.
  void set_reporting(bool is_reporting) GPUMETER_EXCLUDES(mutex_);

  /// In the order of their first event; the list only grows.
  std::vector<OperationalKind> kinds() const GPUMETER_EXCLUDES(mutex_);
  std::size_t size() const noexcept GPUMETER_EXCLUDES(mutex_);

  /// Unsupported while the driver does not report them.
  Sample overflows() const noexcept GPUMETER_EXCLUDES(mutex_);
  /// Sets the slots from `first` on to the counts of the first `many` kinds.
  void write(std::size_t first, std::size_t many, SampleSink& sink) const noexcept GPUMETER_EXCLUDES(mutex_);

  /// Returns false if the other source has reported the same occurrence of the XID: within 5 s before `now`,
  /// and not matched yet.
  bool is_first_report(std::uint64_t xid, XidSource source, Nanoseconds now) GPUMETER_EXCLUDES(mutex_);

 private:
  struct Count {
    OperationalKind kind;
    std::uint64_t events = 0;
  };
  /// Reports of an XID by one source that the other has not matched.
  struct Unmatched {
    XidSource source{};
    std::uint64_t reports = 0;
    Nanoseconds last{};
  };

  mutable Mutex mutex_;
  std::vector<Count> counts_ GPUMETER_GUARDED_BY(mutex_);
  std::uint64_t overflows_ GPUMETER_GUARDED_BY(mutex_) = 0;
  bool is_reporting_ GPUMETER_GUARDED_BY(mutex_) = false;
  std::map<std::uint64_t, Unmatched> unmatched_ GPUMETER_GUARDED_BY(mutex_);  // by XID
};

class DeviceEvents;

/// The operational events of a session's GPUs. They have an event set of their own, so that a fault of the
/// new interface costs no XID. On drivers without them, or without the permission (CAP_SYS_ADMIN), it does
/// nothing.
class OperationalListener {
 public:
  explicit OperationalListener(const NvmlFunctions& functions) : nvml_(functions) {}
  /// Runs with the last user of the session.
  ~OperationalListener();
  OperationalListener(const OperationalListener&) = delete;
  OperationalListener& operator=(const OperationalListener&) = delete;

  /// Events of the GPU are counted from the next take() on. Any thread.
  void listen(std::string uuid, std::shared_ptr<DeviceEvents> events, LoggedGpu logged)
      GPUMETER_EXCLUDES(mutex_);
  /// Called when the GPU is lost or closed. Any thread.
  void forget(const std::shared_ptr<DeviceEvents>& events) GPUMETER_EXCLUDES(mutex_);

  /// Event thread. Counts the events that have arrived, without waiting, and adds them to `out` for the log.
  void take(const Clock& clock, std::vector<DeviceEvent>& out) GPUMETER_EXCLUDES(mutex_);

 private:
  enum class State : std::uint8_t { fresh, on, failing, refused };
  struct Source {
    std::string uuid;
    std::shared_ptr<DeviceEvents> events;
    LoggedGpu logged;
    State state = State::fresh;
  };

  void register_new(const Clock& clock, std::vector<DeviceEvent>& out) GPUMETER_EXCLUDES(mutex_);
  unsigned register_one(const Source& source);
  void note(const Source& source, unsigned result) GPUMETER_EXCLUDES(mutex_);
  bool is_any_on() GPUMETER_EXCLUDES(mutex_);
  void start_again() GPUMETER_EXCLUDES(mutex_);
  std::optional<Source> source_of(const std::string& uuid) GPUMETER_EXCLUDES(mutex_);
  void count(const nvml::SetEvent& event, const Clock& clock, std::vector<DeviceEvent>& out)
      GPUMETER_EXCLUDES(mutex_);
  std::optional<std::uint64_t> legacy_xid() const;

  const NvmlFunctions& nvml_;
  nvml::EventSet set_ = nullptr;     // event thread
  Nanoseconds try_again_at_{};       // event thread; CLOCK_MONOTONIC
  bool has_logged_refusal_ = false;  // event thread
  Mutex mutex_;
  std::vector<Source> sources_ GPUMETER_GUARDED_BY(mutex_);
};

}  // namespace gpumeter::nvidia
