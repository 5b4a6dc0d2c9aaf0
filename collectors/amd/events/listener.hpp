#pragma once

#include <poll.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/descriptor.hpp"
#include "base/mutex.hpp"
#include "collectors/amd/events/card_events.hpp"
#include "collectors/amd/events/smi_device.hpp"
#include "collectors/amd/events/smi_text.hpp"
#include "collectors/api/event_source.hpp"

namespace gpumeter::amd {

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
