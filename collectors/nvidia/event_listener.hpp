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
