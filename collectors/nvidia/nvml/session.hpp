#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "collectors/nvidia/event_listener.hpp"
#include "collectors/nvidia/nvml/abi.hpp"
#include "collectors/sources/dynamic_library.hpp"

namespace gpumeter::nvidia {

/// NVML between nvmlInit and nvmlShutdown. Whoever calls it holds the session by shared_ptr for the time of
/// the call, so that the last holder shuts NVML down and no call can be under way then; a call that
/// hangs keeps it open for ever.
class NvmlSession {
 public:
  /// The process's session with the library at `path` ("libnvidia-ml.so.1"): the one that is open, else a new
  /// one. An Error gives the reason and what would help. May block. Any thread.
  static Result<std::shared_ptr<NvmlSession>> shared(const std::string& path);

  ~NvmlSession();
  NvmlSession(const NvmlSession&) = delete;
  NvmlSession& operator=(const NvmlSession&) = delete;

  const NvmlFunctions& functions() const noexcept { return functions_; }

  /// The driver was unloaded or replaced under it: every handle is void. Its users stop calling and
  /// release it, and a new session can be opened. Any thread.
  void condemn() noexcept { *dead_ = true; }
  bool is_dead() const noexcept { return *dead_; }

  /// Events of the GPUs, for as long as the session lasts.
  EventListener& listener() noexcept { return *listener_; }

  /// Names of functions that are used where they exist, and do not exist in this library.
  std::string missing() const;

 private:
  explicit NvmlSession(DynamicLibrary library) : library_(std::move(library)) {}
  static Result<std::shared_ptr<NvmlSession>> open(const std::string& path);
  Result<Done> resolve();

  // First, so that it is there until the session has ended.
  const std::shared_ptr<std::atomic<bool>> dead_ = std::make_shared<std::atomic<bool>>(false);
  DynamicLibrary library_;
  NvmlFunctions functions_;
  std::unique_ptr<EventListener> listener_ = std::make_unique<EventListener>(functions_);
  bool initialized_ = false;
};

/// Whether there is no library of that name at all, as on a machine without NVIDIA's driver.
bool is_absent(const Error& error);

}  // namespace gpumeter::nvidia
