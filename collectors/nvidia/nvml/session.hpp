#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "collectors/nvidia/event_listener.hpp"
#include "collectors/nvidia/nvml/abi.hpp"
#include "collectors/sources/dynamic_library.hpp"

namespace gpumeter::nvidia {

/// NVML between nvmlInit and nvmlShutdown. Each caller holds the session by shared_ptr for the duration of a
/// call. The last holder shuts NVML down, so no call is under way at that time. A call that hangs keeps the
/// session open forever.
class NvmlSession {
 public:
  /// Returns the process's session with the library at `path` ("libnvidia-ml.so.1"), and opens one if there
  /// is none. An Error gives the reason and a remedy. May block. Any thread.
  static Result<std::shared_ptr<NvmlSession>> shared(const std::string& path);

  ~NvmlSession();
  NvmlSession(const NvmlSession&) = delete;
  NvmlSession& operator=(const NvmlSession&) = delete;

  const NvmlFunctions& functions() const noexcept { return functions_; }

  /// Marks the session dead: the driver was unloaded or replaced, so every handle is void. The users stop
  /// calling and release the session, and a new one can be opened. Any thread.
  void condemn() noexcept { *dead_ = true; }
  bool is_dead() const noexcept { return *dead_; }

  /// Events of the GPUs, for the life of the session.
  EventListener& listener() noexcept { return *listener_; }

  /// Names of the optional functions that this library lacks.
  std::string missing() const;

 private:
  explicit NvmlSession(DynamicLibrary library) : library_(std::move(library)) {}
  static Result<std::shared_ptr<NvmlSession>> open(const std::string& path);
  Result<Done> resolve();

  // Declared first, so that it outlives the end of the session.
  const std::shared_ptr<std::atomic<bool>> dead_ = std::make_shared<std::atomic<bool>>(false);
  DynamicLibrary library_;
  NvmlFunctions functions_;
  std::unique_ptr<EventListener> listener_ = std::make_unique<EventListener>(functions_);
  bool initialized_ = false;
};

/// Whether no library of that name exists, as on a machine without NVIDIA's driver.
bool is_absent(const Error& error);

}  // namespace gpumeter::nvidia
