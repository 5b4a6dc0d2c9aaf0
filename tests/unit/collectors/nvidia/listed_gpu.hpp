#pragma once

#include <charconv>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "collectors/nvidia/collector.hpp"
#include "collectors/table/device.hpp"
#include "tests/fakes/nvidia_gpu.hpp"

namespace gpumeter::nvidia {

/// A GPU of a fake driver. Lists its processes after each normal pass, as its lane does. Each pass sets the
/// driver's time.
class ListedGpu {
 public:
  explicit ListedGpu(FakeDriver& driver, const std::string& uuid = "GPU-0")
      : driver_(driver),
        device_(NvidiaContext(NvidiaOptions{driver.library(), false}), nvidia_rows(),
                nvidia_partition_rows()) {
    driver_.set_time(0);
    if (const Result<Done> attached = device_.attach(gpu_of(uuid)); !attached)
      throw std::runtime_error(attached.error().message());
    values_.assign(device_.series().size(), 0);
    statuses_.assign(device_.series().size(), ReadStatus::unsupported);
  }

  PassOutcome pass(double at, int elapsed_seconds) {
    driver_.set_time(at);
    SampleSink sink(values_, statuses_);
    return device_.sample(moment(at, elapsed_seconds), sink);
  }

  /// Returns a line such as "100: 2048 B, 4 s" for each process or virtual machine, with "-" for unknown
  /// values. Returns the
  /// status if it is not ok.
  std::string asked(double at, int elapsed_seconds) {
    driver_.set_time(at);
    std::vector<DeviceProcess> list;
    const ReadStatus status = device_.processes(moment(at, elapsed_seconds), list);
    if (status != ReadStatus::ok) return std::string(to_string(status)) + (list.empty() ? "" : " and a list");
    std::string text;
    for (const DeviceProcess& process : list)
      text += (process.vm.empty() ? std::to_string(process.pid) : process.vm) + ": " +
              number(process.memory_bytes, " B") + ", " + number(process.busy_seconds, " s") + "\n";
    return text;
  }

  std::string listed(double at = 0, int elapsed_seconds = 0) {
    if (pass(at, elapsed_seconds) != PassOutcome::complete) return "no complete pass";
    return asked(at, elapsed_seconds);
  }

  ListingDevice<NvidiaContext>& device() { return device_; }

 private:
  static Pass moment(double at, int elapsed_seconds) {
    const std::chrono::duration<double> now(at);
    return {Tier::normal, std::chrono::duration_cast<Nanoseconds>(now),
            std::chrono::seconds(elapsed_seconds)};
  }
  static std::string number(std::optional<double> value, const char* unit) {
    if (!value) return "-";
    char text[32];
    const auto end = std::to_chars(std::begin(text), std::end(text), *value).ptr;
    return std::string(text, end) + unit;
  }

  FakeDriver& driver_;
  ListingDevice<NvidiaContext> device_;
  std::vector<double> values_;
  std::vector<ReadStatus> statuses_;
};

/// Returns the first list of a GPU with these keys in the scenario.
inline std::string listed_of(const std::string& keys, const std::string& machine = "") {
  FakeDriver driver(machine + "\ndevices: [{uuid: GPU-0, " + keys + "}]");
  return ListedGpu(driver).listed();
}

}  // namespace gpumeter::nvidia
