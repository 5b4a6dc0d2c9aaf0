#pragma once

#include <cstdint>

/// What the fake exports beside NVML's functions, for tests that load it.
extern "C" {

/// From now on the time is this many seconds, and stands still until set again. Scripted latency stays real;
/// a hang ends when the time or the real clock has passed its length.
void fake_nvml_set_time(double seconds);

/// As a driver that is loaded anew: the scenario is read again, the time (if real) begins at 0, handles of
/// before are stale, calls that hang come back, calls and violations count from 0.
void fake_nvml_reload();

/// Calls of NVML's function NAME so far; of all of them together for "all".
std::uint64_t fake_nvml_calls(const char* name);

struct FakeNvmlOpen {
  unsigned inits, event_sets, gpm_samples, calls_under_way;
};
/// What is not closed.
struct FakeNvmlOpen fake_nvml_open();

/// Rules that were broken, a line each; "" for none. Valid until somebody asks again.
const char* fake_nvml_violations();
}
