#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "collectors/nvidia/nvml/constants.hpp"
#include "collectors/nvidia/nvml/return_code.hpp"
#include "collectors/nvidia/nvml/session.hpp"

namespace gpumeter::nvidia {

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

/// The driver's version, such as "580.95.05"; empty if the call fails. NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE
/// is 80.
inline std::string driver_version(NvmlCaller& caller) {
  std::array<char, 96> buffer{};
  const auto size = static_cast<unsigned>(buffer.size() - 1);
  const unsigned result = caller.call_plain<&F::nvmlSystemGetDriverVersion>(buffer.data(), size);
  return result == nvml::kSuccess ? buffer.data() : "";
}

}  // namespace gpumeter::nvidia
