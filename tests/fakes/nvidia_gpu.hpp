#pragma once

#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "collectors/nvidia/collector.hpp"
#include "collectors/nvidia/identity.hpp"
#include "collectors/table/device.hpp"
#include "tests/fakes/fake_driver.hpp"
#include "tests/fakes/sampled_page.hpp"

namespace gpumeter::nvidia {

/// Returns the lines that start with one of `starts`.
inline std::string lines_of(const std::string& text, const std::vector<std::string_view>& starts) {
  std::istringstream in(text);
  std::string kept;
  for (std::string line; std::getline(in, line);) {
    const auto begins = [&](std::string_view start) { return line.starts_with(start); };
    if (std::any_of(starts.begin(), starts.end(), begins)) kept += line + "\n";
  }
  return kept;
}

inline std::unique_ptr<Device> table_device(NvidiaOptions options) {
  return std::make_unique<TableDevice<NvidiaContext>>(NvidiaContext(std::move(options)), nvidia_rows(),
                                                      nvidia_partition_rows());
}

inline DeviceInfo gpu_of(const std::string& uuid) {
  DeviceInfo info;
  info.uuid = uuid;
  return info;
}

/// A GPU of a fake driver, sampled as by its lane. Each pass sets the driver's time.
class NvidiaGpu {
 public:
  explicit NvidiaGpu(FakeDriver& driver, std::string uuid = "GPU-0", bool each_link = false)
      : driver_(driver), uuid_(std::move(uuid)), page_(table_device({driver.library(), each_link})) {}

  /// Throws the error of attach().
  NvidiaGpu& attach(double at = 0) {
    driver_.set_time(at);
    page_.attach(gpu_of(uuid_));
    return *this;
  }

  /// Runs a pass at second `at`. `elapsed_seconds`: observed time since the previous pass.
  PassOutcome pass(Tier tier, double at, int elapsed_seconds = 0) {
    driver_.set_time(at);
    return page_.pass(tier, std::chrono::seconds(elapsed_seconds));
  }

  /// Runs fast passes, one a second. Attaches again after a pass if the GPU has more series, as its lane
  /// does. Returns how often it did.
  int run_and_bind(int from, int until) {
    int bound = 0;
    for (int at = from; at <= until; ++at) {
      pass(Tier::fast, at, at == from ? 0 : 1);
      if (!page_.has_more(std::chrono::seconds(at))) continue;
      ++bound;
      attach(at);
      for (const Tier tier : kTiers) pass(tier, at);
    }
    return bound;
  }

  /// Runs fast passes, one a second, up to `until`. The first has no predecessor.
  void run(int from, int until) {
    for (int at = from; at <= until; ++at) pass(Tier::fast, at, at == from ? 0 : 1);
  }

  /// Runs one pass of each tier at this second. Returns all series except the events, which every GPU has.
  std::string sampled(double at = 0) {
    for (const Tier tier : kTiers) pass(tier, at);
    return page_.text({"gpu_events_total"});
  }
  std::string lines(const std::vector<std::string_view>& starts) const {
    return lines_of(page_.text(), starts);
  }

  SampledPage& page() { return page_; }

 private:
  FakeDriver& driver_;
  std::string uuid_;
  SampledPage page_;
};

}  // namespace gpumeter::nvidia
