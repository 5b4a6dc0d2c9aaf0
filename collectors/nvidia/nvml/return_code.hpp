#pragma once

#include <string>
#include <string_view>

#include "collectors/api/sample.hpp"

namespace gpumeter::nvidia {

/// What an NVML error concerns.
enum class Blame : std::uint8_t {
  nobody,   ///< success
  call,     ///< this value only
  device,   ///< the GPU is lost or wants a reset: no further call on it until it is found again
  library,  ///< the driver is gone or was replaced: every handle is void
};

Blame blame_of(unsigned result) noexcept;

/// How a read ended that gave this return code.
ReadStatus status_of(unsigned result) noexcept;

/// True for errors that may be gone at the next call: UNKNOWN, TIMEOUT and their like. Not for "nothing
/// there".
bool is_passing_trouble(unsigned result) noexcept;

/// True for what the device or the library will not give later either: another source has its turn.
constexpr bool is_lacking(ReadStatus status) noexcept {
  return status == ReadStatus::unsupported || status == ReadStatus::denied;
}

/// Why the library cannot be used, and what would help.
std::string reason_of(unsigned result);
/// The same of nvmlInit.
std::string reason_of_init(unsigned result);

}  // namespace gpumeter::nvidia
