#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/result.hpp"
#include "collectors/api/catalog.hpp"
#include "collectors/api/device_identity.hpp"
#include "collectors/api/series.hpp"
#include "collectors/jobs/wire/line.hpp"
#include "exporter/store/series_list.hpp"

/// Results of active benchmarks: `gpumeter-benchmark` measures them, `gpumeter import` reads them from files
/// of other programs.
namespace gpumeter::jobs::benchmarks {

/// A name in a message that begins with this belongs to a benchmark.
inline constexpr std::string_view kPrefix = "gpu.benchmark.";
/// A metric that a benchmark may send.
struct ResultKind;

/// A result as it stands on the page.
struct Result {
  const ResultKind* kind = nullptr;
  std::vector<Label> labels;
  double value = 0;

  bool has_place_of(const Result& other) const { return kind == other.kind && labels == other.labels; }
};

/// What one suite measured on one GPU in its last run.
struct SuiteRun {
  double timestamp = 0;        ///< Unix time in seconds: the sender's, otherwise that of reception
  std::optional<bool> failed;  ///< nullopt: the suite gives no verdict
  std::vector<Result> results;
};

/// The results of benchmarks by GPU and suite.
///
/// A message replaces everything that its suites have for its GPUs, at once. A run that fails sends its
/// verdict and what it has measured correctly, so that no rate of an earlier run is left. A run that gives
/// way to a job sends nothing, and the results of the run before it stay with their time.
///
/// Results stay until they are replaced, also while the GPU is missing. One thread.
class Results {
 public:
  static constexpr std::size_t kMostResults = 256;  ///< of a GPU
  static constexpr std::size_t kMostSuites = 16;    ///< of a GPU
  /// More than any machine has. If there are more, those that are not known any more give way.
  static constexpr std::size_t kMostDevices = 64;

  using Devices = std::span<const DeviceIdentity>;
  using Drop = std::function<void(Refusal)>;

  /// Takes one message; the accepted lines of a suite and a GPU count together. Calls `drop` once for each
  /// rejected line. `devices`: the known ones.
  void receive(std::string_view payload, Devices devices, Nanoseconds unix_now, const Drop& drop);

  /// Returns what the page shows of this GPU, in the order of kinds:
  /// - a value that two suites have: that of the later run;
  /// - the verdict of the latest run that has one, and the time of the latest run;
  /// - if that verdict is a failure, no rate of an earlier run.
  std::vector<Result> shown(const std::string& uuid) const;

  bool empty() const noexcept { return devices_.empty(); }
  /// Changes with each change of the results.
  std::uint64_t version() const noexcept { return version_; }

  /// The section of the state file.
  std::string saved() const;
  /// Takes the results of an earlier process. On an Error there are none.
  gpumeter::Result<Done> restore(std::string_view section);

 private:
  using Suites = std::map<std::string, SuiteRun, std::less<>>;
  using ByDevice = std::map<std::string, Suites, std::less<>>;  ///< by uuid

  void replace(const std::string& uuid, Suites& runs, Devices devices, const Drop& drop);
  bool make_room(Devices devices);

  ByDevice devices_;
  std::uint64_t version_ = 0;
};

/// The results of benchmarks in the store, with the labels of their GPUs. A GPU that is not known, as while
/// its collector is disabled, has no series. One thread.
class Series {
 public:
  Series(Source source, DeviceLabels labels) : list_(std::move(source)), labels_(labels) {}

  /// Commits the series if the results or the known `devices` differ from those of the last call.
  void show(const Results& results, std::vector<DeviceIdentity> devices, Nanoseconds now);

 private:
  SeriesList list_;
  const DeviceLabels labels_;
  std::uint64_t version_ = 0;
  std::vector<DeviceIdentity> devices_;
};

inline constexpr const MetricDescriptor* kFamilies[] = {
    &catalog::benchmark_flops,  &catalog::benchmark_memory_bandwidth, &catalog::benchmark_transfer,
    &catalog::benchmark_result, &catalog::benchmark_failed,           &catalog::benchmark_timestamp};

}  // namespace gpumeter::jobs::benchmarks
