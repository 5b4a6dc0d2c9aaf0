#pragma once

#include <poll.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "base/mutex.hpp"
#include "base/result.hpp"
#include "collectors/api/event_source.hpp"

/// Events that the compute driver reports for a card: counted by the event thread, read by the card's lane.
namespace gpumeter::amd {

/// A kind of event: the value of the label `event`, and the driver's number (linux/kfd_ioctl.h,
/// enum kfd_smi_event). A reset has one event before and one after it.
struct EventKind {
  std::string_view name;
  std::uint32_t number;
};
inline constexpr EventKind kEvents[] = {
    {"vm_fault", 1}, {"thermal_throttle", 2}, {"reset", 3}, {"reset_done", 4}};
inline constexpr std::size_t kEventCount = std::size(kEvents);

/// The driver numbers bits from event 1 on (KFD_SMI_EVENT_MASK_FROM_INDEX).
constexpr std::uint64_t mask_of(const EventKind& event) noexcept {
  return std::uint64_t{1} << (event.number - 1);
}

/// The counts of one card since the daemon's start, by place in kEvents. They outlive losses of the card. Any
/// thread.
class CardEvents {
 public:
  void count(std::size_t place) noexcept { counts_[place].fetch_add(1); }
  std::uint64_t count_of(std::size_t place) const noexcept { return counts_[place]; }

  /// Whether the driver reports events of the card now. Otherwise none are counted.
  void set_reported(bool reported) noexcept { is_reported_ = reported; }
  bool is_reported() const noexcept { return is_reported_; }

 private:
  std::array<std::atomic<std::uint64_t>, kEventCount> counts_{};
  std::atomic<bool> is_reported_ = false;
};

/// Parses one line of the driver's event stream, "NUMBER DETAILS" with a hexadecimal number (kernel 6.12,
/// kfd_smi_events.c, kfd_smi_event_add). Returns the place in kEvents; nullopt for any other event. Any
/// bytes.
std::optional<std::size_t> parse_smi_line(std::string_view line) noexcept;

/// Splits the stream of one event descriptor into lines. A read may end within a line, because the driver
/// copies as many bytes as fit. One thread.
class SmiStream {
 public:
  /// The driver's longest message has 96 bytes (KFD_SMI_EVENT_MSG_SIZE). Of a longer line the rest is
  /// dropped.
  static constexpr std::size_t kLongestLine = 256;

  /// Calls `take(place)` for each known event of the completed lines.
  template <class Take>
  void add(std::string_view bytes, const Take& take) {
    for (const char c : bytes) {
      if (c != '\n') {
        if (size_ < line_.size()) line_[size_++] = c;
        continue;
      }
      if (const auto place = parse_smi_line({line_.data(), size_})) take(*place);
      size_ = 0;
    }
  }

 private:
  std::array<char, kLongestLine> line_{};
  std::size_t size_ = 0;
};

/// The compute driver's source of events. Event thread.
class SmiDevice {
 public:
  virtual ~SmiDevice() = default;

  /// Opens the event stream of a GPU node by its gpu_id: a descriptor that poll() can wait for, which reports
  /// the events of `mask`. May block in the driver.
  virtual Result<Descriptor> open_stream(std::uint32_t gpu_id, std::uint64_t mask) = 0;
};

/// /dev/kfd and its ioctl AMDKFD_IOC_SMI_EVENTS (linux/kfd_ioctl.h). The first stream opens the node.
///
/// An open node holds no card awake: only a process that binds a card's memory does (kernel 6.12,
/// kfd_process.c, kfd_bind_process_to_device). But the driver keeps the process registered until the process
/// ends, and refuses to change partitions meanwhile (kfd_device.c, kgd2kfd_check_and_lock_kfd).
class KfdDevice final : public SmiDevice {
 public:
  explicit KfdDevice(std::string path = "/dev/kfd") : path_(std::move(path)) {}
  Result<Descriptor> open_stream(std::uint32_t gpu_id, std::uint64_t mask) override;

 private:
  const std::string path_;
  Descriptor node_;
};

/// The event streams of all cards. Lanes add and remove cards; only the event thread opens, reads and closes
/// streams.
class EventListener {
 public:
  EventListener(std::unique_ptr<SmiDevice> device, const Clock& clock)
      : device_(std::move(device)), clock_(clock) {}

  /// Events of the card are counted from the next wait on. `gpu_ids`: its nodes, the first one first. Returns
  /// the card's counts, which continue from an earlier call. Any thread.
  std::shared_ptr<const CardEvents> listen(const std::string& uuid, std::vector<std::uint32_t> gpu_ids)
      GPUMETER_EXCLUDES(mutex_);

  /// The card was closed or lost. Any thread.
  void forget(const std::string& uuid) GPUMETER_EXCLUDES(mutex_);

  /// Waits for events for `at_most`, counts them, and returns them for the log. Event thread.
  std::vector<DeviceEvent> wait(Nanoseconds at_most) GPUMETER_EXCLUDES(mutex_);

 private:
  struct Card {
    std::vector<std::uint32_t> gpu_ids;  ///< empty: forgotten
    std::uint64_t generation = 0;        ///< of the last listen() or forget()
    std::shared_ptr<CardEvents> events = std::make_shared<CardEvents>();
  };
  struct Stream {
    Descriptor descriptor;
    SmiStream text;
  };
  struct Open {  ///< the streams of a card
    std::uint64_t generation = 0;
    std::vector<Stream> streams;
    bool has_failed = false;  ///< and is tried again
    Nanoseconds try_again_at{};
  };

  std::map<std::string, Card> wanted() const GPUMETER_EXCLUDES(mutex_);
  void follow(const std::map<std::string, Card>& wanted, std::vector<DeviceEvent>& out);
  void open(const std::string& uuid, const Card& card, Open& streams, std::vector<DeviceEvent>& out);
  void read(const std::map<std::string, Card>& wanted, std::vector<DeviceEvent>& out);
  bool read_stream(Stream& stream, const std::string& uuid, CardEvents& events,
                   std::vector<DeviceEvent>& out) const;
  void wait_for_bytes(Nanoseconds at_most) GPUMETER_EXCLUDES(mutex_);

  const std::unique_ptr<SmiDevice> device_;  // event thread
  const Clock& clock_;
  std::map<std::string, Open> open_;  // event thread; by uuid
  std::vector<pollfd> polled_;        // event thread
  mutable Mutex mutex_;
  Condition changed_;
  std::map<std::string, Card> cards_ GPUMETER_GUARDED_BY(mutex_);
  std::uint64_t generation_ GPUMETER_GUARDED_BY(mutex_) = 0;
};

}  // namespace gpumeter::amd
