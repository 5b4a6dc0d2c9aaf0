#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "collectors/simulated/collector.hpp"
#include "tests/fakes/fake_clock.hpp"

namespace gpumeter::simulated {

using namespace std::chrono_literals;
using Options = std::map<std::string, std::vector<std::string>>;

inline std::string name_of(const SeriesSpec& series) {
  std::string name(series.family->name);
  for (const Label& label : series.labels) name += ' ' + label.name + '=' + label.value;
  return name;
}

/// One device, sampled as by a lane: passes at the clock's time, and the values in the slots.
class Bench {
 public:
  explicit Bench(const Options& options = {}, std::size_t place = 0) {
    collector = std::move(*open_simulated({"", "", &clock, options}));
    info = collector->discover()->devices.at(place);
    device = collector->device(info);
    attach();
  }

  bool attach() {
    if (!device->attach(info)) return false;
    values_.assign(device->series().size(), 0);
    statuses_.assign(device->series().size(), ReadStatus::unsupported);
    return true;
  }

  PassOutcome pass(Tier tier, Nanoseconds elapsed = 0s) {
    SampleSink sink(values_, statuses_);
    return device->sample({tier, clock.monotonic(), elapsed}, sink);
  }
  void pass_all() {
    for (const Tier tier : kTiers) EXPECT_EQ(pass(tier), PassOutcome::complete);
  }
  // Runs a pass each second from now on.
  void run(Nanoseconds time) {
    for (; time > 0s; time -= 1s) {
      clock.advance(1s);
      EXPECT_EQ(pass(Tier::fast, 1s), PassOutcome::complete);
    }
  }

  // Returns -1 if the series is not on the page.
  double value(const std::string& name) const {
    const auto series = device->series();
    for (std::size_t i = 0; i < series.size(); ++i) {
      if (name_of(series[i]) == name && statuses_[i] == ReadStatus::ok) return values_[i];
    }
    return -1;
  }
  std::vector<std::string> missing() const {
    std::vector<std::string> names;
    for (std::size_t i = 0; i < statuses_.size(); ++i) {
      if (statuses_[i] != ReadStatus::ok) names.push_back(name_of(device->series()[i]));
    }
    return names;
  }
  std::vector<std::string> listed() const {
    std::vector<std::string> uuids;
    const Discovery found = *collector->discover();
    uuids.reserve(found.devices.size());
    for (const DeviceInfo& one : found.devices) uuids.push_back(one.uuid);
    return uuids;
  }

  FakeClock clock;
  std::unique_ptr<Collector> collector;
  DeviceInfo info;
  std::unique_ptr<Device> device;

 private:
  std::vector<double> values_;
  std::vector<ReadStatus> statuses_;
};

}  // namespace gpumeter::simulated
