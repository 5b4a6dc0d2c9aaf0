#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace gpumeter::simulated {

/// Real processes that are to be on simulated devices.
struct ProcessOption {
  std::optional<int> device;  ///< nullopt: each
  int pid = 0;                ///< 0: those of `file`
  std::string file;           ///< with pids, one a line
  /// Of each of them, in seconds a second. nullopt: an equal part of what the device does.
  std::optional<double> busy;
  std::optional<double> memory_bytes;  ///< of each of them; nullopt: not known
};

/// Reads `GPU=WHO[,busy=RATIO][,memory=BYTES]`: "0=4711,busy=0.5,memory=2GiB", "*=/run/pids". GPU counts from
/// 0 or is `*`, WHO is a pid or an absolute path without commas. The Error names the text and what would be
/// right.
Result<ProcessOption> parse_process_option(std::string_view text, int device_count);

}  // namespace gpumeter::simulated
