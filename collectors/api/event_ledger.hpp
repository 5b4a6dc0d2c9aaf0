#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/mutex.hpp"

namespace gpumeter {

/// Something that happened to a device, as one source reports it. Texts may hold any bytes: user space chose
/// some of them, such as the name of a process.
struct EventRecord {
  std::uint64_t id = 0;            ///< set by the ledger: rises, about the time in microseconds
  Nanoseconds time{};              ///< since 1970
  bool is_time_estimated = false;  ///< computed from the log's own clock, which drifts
  std::string source = {};         ///< kKernelLog, kJournal, or the name of a collector
  std::string vendor = {};
  std::string pci_address = {};  ///< lower case, four-digit domain; empty: unknown
  std::string kind = {};         ///< "xid", "ring_timeout"
  std::optional<std::uint64_t> code = {};
  std::optional<unsigned> subcode = {};
  std::optional<int> link = {};           ///< -1: all
  std::optional<unsigned> instance = {};  ///< the GPU instance of MIG
  std::optional<std::uint32_t> pid = {};
  std::string text = {};      ///< of the log
  std::string meaning = {};   ///< by the catalogue
  std::string severity = {};  ///< "none", "degraded", "failed"
  std::string action = {};    ///< as in gpu_health_reason
  std::uint64_t count = 1;    ///< how often it happened within EventLedger::kJoined
};

inline constexpr std::string_view kKernelLog = "kernel";
inline constexpr std::string_view kJournal = "journal";

/// The events of all sources. The kernel's log and the driver's library report the same event, which counts
/// once: of events of one kind and code of a device with less than kSame between them, as many count as the
/// source has that reports most. The ledger keeps the last events for readers. Any thread; no call blocks.
class EventLedger {
 public:
  static constexpr std::size_t kMost = 64;
  static constexpr Nanoseconds kSame = std::chrono::seconds(5);
  /// Within this time, equal events of a storm are one record with a count.
  static constexpr Nanoseconds kJoined = std::chrono::seconds(60);
  /// A driver's event becomes a record after this time, unless the log reports it with its text.
  static constexpr Nanoseconds kHeld = std::chrono::seconds(2);
  /// The kernel's lines are bounded by 8 KiB; a longer text is cut.
  static constexpr std::size_t kLongestText = 512;

  /// Fills in meaning, severity and action.
  using Describe = void (*)(EventRecord& event);
  /// `clock` must outlive the ledger. `describe` may be null.
  explicit EventLedger(const Clock& clock, Describe describe = nullptr)
      : clock_(clock), describe_(describe) {}

  /// Takes an event. Returns true if it counts: no other source has reported it.
  bool note(EventRecord event) GPUMETER_EXCLUDES(mutex_);
  /// Takes an event of the log that was counted before or is too old to count: it is only shown, unless the
  /// ledger has later ones of the log.
  void show(EventRecord event) GPUMETER_EXCLUDES(mutex_);

  /// By PCI address and value of the label `event`.
  using Counts = std::map<std::pair<std::string, std::string>, std::uint64_t>;
  /// Counts an event of the log that is no XID; as everything here, from 0 in each process, which is what
  /// exporter/health expects of events that the daemon counts. `label`: of gpu_events_total.
  void count(const std::string& pci_address, std::string_view label) GPUMETER_EXCLUDES(mutex_);
  Counts counts() GPUMETER_EXCLUDES(mutex_);

  /// Whether the kernel's log is read now. Otherwise drivers' events become records at once.
  void set_log_read(bool is_read) noexcept { is_log_read_ = is_read; }

  /// Calls `count(code, instance, times, last)` for the XIDs of the device that the log has reported since
  /// the last call, with the time of the last one since 1970. Lane thread.
  template <class Count>
  void take_xids(const std::string& pci_address, Count count) GPUMETER_EXCLUDES(mutex_) {
    if (!has_xids_) return;
    const MutexLock lock(mutex_);
    for (auto it = xids_.begin(); it != xids_.end();) {
      const auto& [address, code, instance] = it->first;
      if (address != pci_address) {
        ++it;
        continue;
      }
      count(code, instance, it->second.times, it->second.last);
      it = xids_.erase(it);
    }
    has_xids_ = !xids_.empty();
  }

  /// The last events whose id is above `id`, the oldest first, `most` of them.
  std::vector<EventRecord> after(std::uint64_t id, std::size_t most = kMost) GPUMETER_EXCLUDES(mutex_);
  bool has_after(std::uint64_t id) GPUMETER_EXCLUDES(mutex_);

 private:
  using Kind = std::tuple<std::string, std::string, std::uint64_t>;  ///< device, kind, code
  struct Burst {
    Nanoseconds last{};
    std::uint64_t of_log = 0, of_driver = 0;
  };
  struct Xids {
    std::uint64_t times = 0;
    Nanoseconds last{};
  };
  static Kind kind_of(const EventRecord& event) {
    return {event.pci_address, event.kind, event.code.value_or(0)};
  }

  bool is_new(const EventRecord& event) GPUMETER_REQUIRES(mutex_);
  void keep(EventRecord event, bool counts) GPUMETER_REQUIRES(mutex_);
  void keep_held() GPUMETER_REQUIRES(mutex_);

  const Clock& clock_;
  const Describe describe_;
  std::atomic<bool> is_log_read_ = false;
  std::atomic<bool> has_xids_ = false;
  Mutex mutex_;
  std::uint64_t last_id_ GPUMETER_GUARDED_BY(mutex_) = 0;
  Nanoseconds last_of_log_ GPUMETER_GUARDED_BY(mutex_){};
  std::deque<EventRecord> records_ GPUMETER_GUARDED_BY(mutex_);  ///< by id
  std::deque<EventRecord> held_ GPUMETER_GUARDED_BY(mutex_);     ///< of drivers, by time
  std::map<Kind, Burst> bursts_ GPUMETER_GUARDED_BY(mutex_);
  Counts counts_ GPUMETER_GUARDED_BY(mutex_);
  /// By device, code and GPU instance (kNoInstance: none).
  std::map<std::tuple<std::string, std::uint64_t, unsigned>, Xids> xids_ GPUMETER_GUARDED_BY(mutex_);
};

}  // namespace gpumeter
