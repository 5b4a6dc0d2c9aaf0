#pragma once

#include <string>

#include "base/result.hpp"

namespace gpumeter {

/// Forgets a device: asks the daemon that uses the state folder, or edits the folder's file if no daemon
/// does. Blocks for as long as the folder does, and for a few seconds if the daemon does not answer. The
/// Error says why the device is still known.
Result<Done> forget_device(const std::string& folder, const std::string& uuid);

}  // namespace gpumeter
