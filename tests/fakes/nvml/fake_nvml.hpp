#pragma once

#include <cstdint>

/// Functions that the fake exports in addition to NVML's, for tests that load it.
extern "C" {

/// Sets the time to this many seconds; it stands still until the next call. Scripted latency stays real. A
/// hang ends when the set time or the real clock has passed its length.
void fake_nvml_set_time(double seconds);

/// Simulates a reload of the driver. The scenario is read again, the time (if real) starts at 0, and old
/// handles are stale. Hanging calls return, and the counts of calls and violations start at 0.
void fake_nvml_reload();

/// Returns the number of calls of NVML's function NAME so far, or of all functions for "all".
std::uint64_t fake_nvml_calls(const char* name);

struct FakeNvmlOpen {
  unsigned inits, event_sets, gpm_samples, calls_under_way;
};
/// Returns the objects that are not closed.
struct FakeNvmlOpen fake_nvml_open();

/// Returns the broken rules, one a line; "" for none. Valid until the next call.
const char* fake_nvml_violations();
}
