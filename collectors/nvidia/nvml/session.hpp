#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.hpp"
#include "collectors/api/sample.hpp"
#include "collectors/nvidia/events.hpp"
#include "collectors/nvidia/nvml/abi.hpp"
#include "collectors/nvidia/nvml/constants.hpp"
#include "collectors/sources/dynamic_library.hpp"

namespace gpumeter::nvidia {

/// What an NVML error concerns.
enum class Blame : std::uint8_t {
  nobody,   ///< success
  call,     ///< this value only
  device,   ///< the GPU is lost or needs a reset: no further call on it until it is found again
  library,  ///< the driver is gone or was replaced: every handle is void
};

Blame blame_of(unsigned result) noexcept;

/// The read status that corresponds to this return code.
ReadStatus status_of(unsigned result) noexcept;

/// True for errors that may be gone at the next call, such as UNKNOWN and TIMEOUT. False for "nothing there".
bool is_passing_trouble(unsigned result) noexcept;

/// True if the device or the library will not have the value later either: the next source is tried.
constexpr bool is_lacking(ReadStatus status) noexcept {
  return status == ReadStatus::unsupported || status == ReadStatus::denied;
}

/// Why the library cannot be used, and the remedy.
std::string reason_of(unsigned result);

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
  OperationalListener& operational() noexcept { return *operational_; }

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
  std::unique_ptr<OperationalListener> operational_ = std::make_unique<OperationalListener>(functions_);
  bool initialized_ = false;
};

/// Whether no library of that name exists, as on a machine without NVIDIA's driver.
bool is_absent(const Error& error);

/// Calls NVML for one GPU or MIG instance. When a call reports that the GPU is lost, the caller makes no
/// further calls until the GPU is found again. Lane thread; copies share nothing.
class NvmlCaller {
 public:
  NvmlCaller() = default;
  NvmlCaller(std::shared_ptr<NvmlSession> session, nvml::Device device)
      : session_(std::move(session)), device_(device) {}

  template <auto Function>
  bool has() const noexcept {
    return session_ != nullptr && session_->functions().*Function != nullptr;
  }

  /// Calls Function(device, arguments...). Returns FUNCTION_NOT_FOUND if the library lacks it.
  template <auto Function, class... Arguments>
  unsigned call(Arguments... arguments) noexcept {
    return call_plain<Function>(device_, arguments...);
  }

  /// Calls Function(arguments...), without the device.
  template <auto Function, class... Arguments>
  unsigned call_plain(Arguments... arguments) noexcept {
    if (lost_by_ != nvml::kSuccess) return lost_by_;
    if (!has<Function>()) return nvml::kFunctionNotFound;
    return blame((session_->functions().*Function)(arguments...));
  }

  /// Evaluates a return code that was obtained by another route.
  unsigned blame(unsigned result) noexcept {
    const Blame who = blame_of(result);
    if (who == Blame::library) session_->condemn();
    if (who == Blame::device || who == Blame::library) lost_by_ = result;
    was_troubled_ = was_troubled_ || is_passing_trouble(result);
    return result;
  }

  /// Whether the GPU or the whole driver is gone.
  bool is_lost() const noexcept {
    return lost_by_ != nvml::kSuccess || (session_ != nullptr && session_->is_dead());
  }
  /// The error by which a call of this caller found the loss; SUCCESS if none did.
  unsigned lost_by() const noexcept { return lost_by_; }

  /// Whether a call of this caller failed in a way that may pass, so that the GPU's state is not fully known.
  bool was_troubled() const noexcept { return was_troubled_; }
  /// `part`: a caller for a part of this device.
  void share_trouble_of(const NvmlCaller& part) noexcept {
    was_troubled_ = was_troubled_ || part.was_troubled_;
  }

  nvml::Device device() const noexcept { return device_; }
  const std::shared_ptr<NvmlSession>& session() const noexcept { return session_; }

 private:
  std::shared_ptr<NvmlSession> session_;
  nvml::Device device_ = nullptr;
  unsigned lost_by_ = nvml::kSuccess;
  bool was_troubled_ = false;
};

/// Returns the text that Function(device, buffer, size) writes; empty if the call fails. The buffer is larger
/// than any that NVML requires (NVML_DEVICE_NAME_V2_BUFFER_SIZE is 96).
template <auto Function>
std::string text_of(NvmlCaller& caller) {
  std::array<char, 128> buffer{};
  const auto size = static_cast<unsigned>(buffer.size() - 1);
  return caller.call<Function>(buffer.data(), size) == nvml::kSuccess ? buffer.data() : "";
}

/// Returns the unsigned that Function(device, &value) writes.
template <auto Function>
std::optional<unsigned> number_of(NvmlCaller& caller) {
  unsigned value = 0;
  if (caller.call<Function>(&value) != nvml::kSuccess) return std::nullopt;
  return value;
}

/// "01234567-89ab-cdef-0123-456789abcdef".
std::string uuid_text(std::span<const unsigned char, 16> uuid);

/// The driver's version, such as "580.95.05"; empty if the call fails. NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE
/// is 80.
inline std::string driver_version(NvmlCaller& caller) {
  std::array<char, 96> buffer{};
  const auto size = static_cast<unsigned>(buffer.size() - 1);
  const unsigned result = caller.call_plain<&F::nvmlSystemGetDriverVersion>(buffer.data(), size);
  return result == nvml::kSuccess ? buffer.data() : "";
}

// Layouts and ids that differ between drivers under the same names. Any thread.

/// Returns the id that a driver of this version has for a field of nvml.h 13.1. Drivers from 575 to 580.65
/// have the clock event counters 269 to 271 at 251 to 253. Under the new ids they return a setting of power
/// smoothing. Returns 0 for drivers between 580.65 and 580.82: no header of theirs is known, and a wrong id
/// would show a setting as a counter.
unsigned throttle_field(unsigned field, std::string_view driver_version) noexcept;

// Distance between the entries of a process list. The headers of CUDA 12.2 and 12.3 have a longer struct than
// earlier and later headers, for functions of the same name. Early drivers of that period (535) write it
// (gpuopenanalytics/pynvml#48). At the wrong distance, memory is read as a pid.

/// Fills a list before the call to the driver.
inline constexpr std::byte kUntouched{0xA5};

/// Whether a driver of this version may write the longer struct: branches 535 to 545.
bool may_be_wide(std::string_view driver_version) noexcept;

/// Returns sizeof(ProcessInfo) or sizeof(WideProcessInfo), by the bytes written into `list`; 0 if neither
/// fits.
std::size_t stride_of(std::span<const std::byte> list, std::size_t count) noexcept;

}  // namespace gpumeter::nvidia
