#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/mutex.hpp"
#include "collectors/api/event_source.hpp"
#include "collectors/nvidia/device_events.hpp"
#include "collectors/nvidia/nvml/abi.hpp"

namespace gpumeter::nvidia {

/// Whether the library has the functions to listen with.
bool has_events(const NvmlFunctions& nvml) noexcept;

/// The event set of a session. Lanes add the GPUs to listen to; only the event thread touches the set, so
/// that it is never freed while somebody waits on it.
class EventListener {
 public:
  explicit EventListener(const NvmlFunctions& functions) : nvml_(functions) {}
  /// With the last user of the session, so nobody waits.
  ~EventListener();
  EventListener(const EventListener&) = delete;
  EventListener& operator=(const EventListener&) = delete;

  struct Source {
    nvml::Device device;
    std::uint64_t types;  ///< of nvml::EventType
    std::string uuid;
    std::shared_ptr<DeviceEvents> events;
  };
  /// From the next wait on, events of the GPU are counted. Any thread.
  void listen(Source source) GPUMETER_EXCLUDES(mutex_);

  /// The GPU is lost or closed: it is left out when the set is made again. Any thread.
  void forget(nvml::Device device) GPUMETER_EXCLUDES(mutex_);

  struct Heard {
    unsigned result;                  ///< of the wait: TIMEOUT where nothing happened
    std::vector<DeviceEvent> events;  ///< also a GPU's first failure to be listened to, for the log
  };
  /// Event thread. Blocks in the driver for `at_most`.
  Heard wait(Nanoseconds at_most, const Clock& clock) GPUMETER_EXCLUDES(mutex_);

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
