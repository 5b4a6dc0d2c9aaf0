#pragma once

#include "programs/benchmark/measure/fault.hpp"
#include "programs/benchmark/measure/pace.hpp"
#include "programs/benchmark/measure/result.hpp"
#include "programs/benchmark/opencl/device.hpp"
#include "programs/benchmark/opencl/session.hpp"

namespace gpumeter::benchmark::opencl {

inline constexpr const char* kBackend = "opencl";

/// All that a test needs. It adds its results to `outcome`.
struct Bench {
  Session& session;
  const Device& device;
  const Pace& pace;
  Faults faults = {};
  Outcome& outcome;

  /// A test that did not end: by the session's error, or because the time was over.
  void ended_early(const std::string& test) {
    if (!session.good()) {
      outcome.failures.push_back(test + ": " + session.problem());
    } else if (pace.is_over()) {
      outcome.notes.push_back(test + ": not measured, because the time was over");
    } else {
      outcome.notes.push_back(test + ": not measured, because the device reports no time of its work");
    }
    session.clear();
  }
  void measured(Quantity quantity, const std::string& kind, double amount, const Sample& sample) {
    outcome.measurements.push_back({quantity, kind, kBackend, amount / sample.median,
                                    amount * sample.deviation / (sample.median * sample.median),
                                    sample.runs});
  }
};

/// The most memory of a test's buffers, on the device and on the host each.
inline constexpr std::size_t kMostMemory = std::size_t{768} << 20U;

/// Matrix multiplication in all data types of the device. 2 * n^3 operations.
void measure_gemm(Bench& bench);
/// Reads, writes, copies and triads of the device's memory.
void measure_memory(Bench& bench);
/// Between the device and memory of the host that the driver pinned. If the session has a second device, also
/// from the first to the second.
void measure_transfers(Bench& bench, bool has_peer);

/// Flips kFaultBit of the word at `place`, counted in 4 bytes.
void flip(Session& session, const Buffer& buffer, cl_uint place);

}  // namespace gpumeter::benchmark::opencl
