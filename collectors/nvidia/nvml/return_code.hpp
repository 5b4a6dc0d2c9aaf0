#pragma once

#include <string>
#include <string_view>

#include "collectors/api/sample.hpp"

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
/// The same for a return code of nvmlInit.
std::string reason_of_init(unsigned result);

}  // namespace gpumeter::nvidia
