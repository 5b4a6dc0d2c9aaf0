#pragma once

#include <cstdint>
#include <string>

#include "base/clock.hpp"
#include "exporter/health/report.hpp"

namespace gpumeter {

/// The exit codes of monitoring plugins.
enum class CheckStatus : std::uint8_t { ok = 0, warning = 1, critical = 2, unknown = 3 };

/// What --fail-on makes of degraded GPUs.
enum class FailOn : std::uint8_t {
  each,      ///< degraded: warning; failed: critical
  failed,    ///< degraded counts as ok
  degraded,  ///< degraded counts as critical
};

/// Returns the status of a whole report. Unknown devices make it unknown, unless something worse is known.
CheckStatus check_status(const health::Report& report, FailOn fail_on);

/// Returns a line as monitoring plugins print it, "GPU CRITICAL - 1 of 8 GPUs failed: GPU 0 xid_79 (reboot) |
/// ok=7 degraded=0 failed=1 unknown=0", and one line for each finding and each device that is not read.
std::string check_text(const health::Report& report, CheckStatus status);

/// Returns the line for a check without a result.
std::string unknown_text(const std::string& reason);

}  // namespace gpumeter
