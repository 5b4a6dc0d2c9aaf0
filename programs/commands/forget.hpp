#pragma once

#include <chrono>
#include <string>

#include "base/clock.hpp"
#include "base/result.hpp"

namespace gpumeter {

/// For a command of the administrator that was refused: unless it runs as root, root may succeed.
Error with_advice(const Error& error);

/// Forgets a device: asks the daemon that uses the state folder, or edits the folder's file if no daemon
/// does. Waits a few seconds for a daemon that does not answer. The Error states why the device is still
/// known. Blocks for as long as the folder does.
Result<Done> forget_device(const std::string& folder, const std::string& uuid);

/// The same on a thread of its own. If the folder hangs, the result is an Error after kForgetPatience, and
/// the thread stays behind: the caller must leave the process by _exit().
inline constexpr std::chrono::seconds kForgetPatience{10};
Result<Done> forget_device_in_time(const std::string& folder, const std::string& uuid, const Clock& clock);

}  // namespace gpumeter
