#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "base/text.hpp"
#include "programs/benchmark/guard.hpp"
#include "programs/benchmark/measure.hpp"

namespace gpumeter::benchmark {

// What becomes of the results: text for people, JSON, and messages for the daemon.

enum class Status : std::uint8_t {
  ok,
  failed,        ///< a wrong result, or a test that did not end
  preempted,     ///< gave way; nothing is kept
  not_measured,  ///< the GPU was not free, or nothing can measure it
};
inline constexpr EnumNames<Status, 4> kStatusNames{{
    {Status::ok, "ok"},
    {Status::failed, "failed"},
    {Status::preempted, "preempted"},
    {Status::not_measured, "not_measured"},
}};

/// One device in one run of the program.
struct Report {
  Gpu gpu;  ///< for a processor, only the uuid and the model, if any
  Status status = Status::ok;
  std::string reason;  ///< unless ok
  Outcome outcome;
  double timestamp = 0;                                ///< Unix time
  double seconds = 0;                                  ///< the time that it took
  std::vector<std::optional<double>> baseline_ratios;  ///< of each measurement; nullopt: no baseline yet
};

/// A table of at most 80 columns per device.
std::string table_text(std::span<const Report> reports);

/// {"benchmarks":[{"uuid":..,"status":"ok",..,"results":[{"quantity":"flops","kind":"fp32",..}]}]}
std::string json_text(std::span<const Report> reports);

/// The message for the jobs socket, in the format of DogStatsD: all results of one GPU in one datagram. A
/// failed benchmark has no rates, because nobody can tell which of them are right. Empty if the status is
/// neither ok nor failed, or the GPU has no uuid.
std::string datagram(const Report& report);

/// Sends the datagram. The Error has the path and the reason.
Result<Done> send_to(const std::string& socket, const std::string& datagram);

/// The results of one GPU over time: the file UUID.json in the state folder. One thread.
///
/// A baseline is the median of the first three runs that were ok and had the same key: the versions of driver
/// and libraries, and the power limit. Such runs are comparable, and the first ones are those of the card
/// when it was installed. The file has the last 200 runs, and the baselines of all keys.
class History {
 public:
  explicit History(std::string folder) : folder_(std::move(folder)) {}

  /// Fills report.baseline_ratios from the file, adds the run if it was ok or failed, and writes the file
  /// completely or not at all. A file that cannot be parsed is kept as UUID.json.bad.
  Result<Done> record(Report& report) const;
  /// Unix time of the last run; 0: none.
  double last_run(const std::string& uuid) const;

 private:
  std::string folder_;
};

}  // namespace gpumeter::benchmark
