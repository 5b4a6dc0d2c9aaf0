#include "exporter/store/registry.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <thread>
#include <vector>

namespace gpumeter {
namespace {

constexpr MetricDescriptor kPower{"gpu_power_watts", "Power.", "watts", MetricType::gauge};
constexpr MetricDescriptor kEnergy{"gpu_energy_joules_total", "Energy.", "joules", MetricType::counter};
constexpr MetricDescriptor kTemperature{"gpu_temperature_celsius", "Temperature.", "celsius",
                                        MetricType::gauge};
constexpr MetricDescriptor kUp{"gpu_up", "Up.", "", MetricType::gauge};

LabelBlock device(unsigned index) {
  DeviceInfo info;
  info.uuid = std::string("u").append(std::to_string(index));
  return {info, index, ""};
}

std::vector<SeriesSpec> series() {
  return {{&kTemperature, {{"sensor", "core"}}}, {&kTemperature, {{"sensor", "memory"}}}, {&kEnergy, {}}};
}

Frame frame_of(const std::vector<double>& values) {
  Frame frame(values.size());
  SampleSink sink = frame.sink();
  for (std::size_t slot = 0; slot < values.size(); ++slot) sink.set(slot, values[slot]);
  return frame;
}

std::string text(const Registry& registry, const Filter& filter = {}) {
  return registry.render(Format::text, filter).text;
}

TEST(Registry, IsAnEmptyPageWithoutSeries) {
  const Registry registry;
  EXPECT_EQ(text(registry), "");
  EXPECT_EQ(registry.render(Format::openmetrics).text, "# EOF\n");
}

TEST(Registry, KeepsTheLinesOfAHistogramInTheirOrder) {
  constexpr MetricDescriptor kStep{"ml_step_duration_seconds", "Step.", "seconds", MetricType::histogram};
  SeriesSet set;
  for (const char* run : {"b", "a"}) {
    const LabelBlock labels = LabelBlock().with(std::vector<Label>{{"run", run}});
    set.add(kStep, labels.with(std::vector<Label>{{"le", "1.0"}}), 1, "_bucket");
    set.add(kStep, labels.with(std::vector<Label>{{"le", "+Inf"}}), 2, "_bucket");
    set.add(kStep, labels, 3.5, "_sum");
    set.add(kStep, labels, 2, "_count");
  }
  Registry registry;
  registry.publish("jobs", set);
  constexpr const char* kLines =
      "ml_step_duration_seconds_bucket{run=\"b\",le=\"1.0\"} 1\n"
      "ml_step_duration_seconds_bucket{run=\"b\",le=\"+Inf\"} 2\n"
      "ml_step_duration_seconds_sum{run=\"b\"} 3.5\n"
      "ml_step_duration_seconds_count{run=\"b\"} 2\n"
      "ml_step_duration_seconds_bucket{run=\"a\",le=\"1.0\"} 1\n"
      "ml_step_duration_seconds_bucket{run=\"a\",le=\"+Inf\"} 2\n"
      "ml_step_duration_seconds_sum{run=\"a\"} 3.5\n"
      "ml_step_duration_seconds_count{run=\"a\"} 2\n";
  EXPECT_EQ(text(registry), std::string("# HELP ml_step_duration_seconds Step.\n"
                                        "# TYPE ml_step_duration_seconds histogram\n") +
                                kLines);
  EXPECT_EQ(registry.render(Format::openmetrics).text,
            std::string("# TYPE ml_step_duration_seconds histogram\n"
                        "# UNIT ml_step_duration_seconds seconds\n"
                        "# HELP ml_step_duration_seconds Step.\n") +
                kLines + "# EOF\n");
}

TEST(Registry, ShowsOneDeviceInBothFormats) {
  Registry registry;
  registry.commit(registry.attach("amd", device(0), series()), frame_of({36.5, 40, 1234567}));
  EXPECT_EQ(text(registry),
            "# HELP gpu_energy_joules_total Energy.\n"
            "# TYPE gpu_energy_joules_total counter\n"
            "gpu_energy_joules_total{gpu=\"0\",uuid=\"u0\"} 1.234567e+06\n"
            "# HELP gpu_temperature_celsius Temperature.\n"
            "# TYPE gpu_temperature_celsius gauge\n"
            "gpu_temperature_celsius{gpu=\"0\",uuid=\"u0\",sensor=\"core\"} 36.5\n"
            "gpu_temperature_celsius{gpu=\"0\",uuid=\"u0\",sensor=\"memory\"} 40\n");
  EXPECT_EQ(registry.render(Format::openmetrics).text,
            "# TYPE gpu_energy_joules counter\n"
            "# UNIT gpu_energy_joules joules\n"
            "# HELP gpu_energy_joules Energy.\n"
            "gpu_energy_joules_total{gpu=\"0\",uuid=\"u0\"} 1.234567e+06\n"
            "# TYPE gpu_temperature_celsius gauge\n"
            "# UNIT gpu_temperature_celsius celsius\n"
            "# HELP gpu_temperature_celsius Temperature.\n"
            "gpu_temperature_celsius{gpu=\"0\",uuid=\"u0\",sensor=\"core\"} 36.5\n"
            "gpu_temperature_celsius{gpu=\"0\",uuid=\"u0\",sensor=\"memory\"} 40\n"
            "# EOF\n");
}

TEST(Registry, GroupsFamiliesOverCollectorsByDeviceIndex) {
  Registry registry;
  const std::vector<SeriesSpec> power = {{&kPower, {}}};
  registry.commit(registry.attach("nvidia", device(10), power), frame_of({10}));
  registry.commit(registry.attach("amd", device(2), power), frame_of({2}));
  EXPECT_EQ(text(registry),
            "# HELP gpu_power_watts Power.\n"
            "# TYPE gpu_power_watts gauge\n"
            "gpu_power_watts{gpu=\"2\",uuid=\"u2\"} 2\n"
            "gpu_power_watts{gpu=\"10\",uuid=\"u10\"} 10\n");
}

TEST(Registry, MentionsNothingThatWasNotRead) {
  Registry registry;
  const SourceId id = registry.attach("amd", device(0), series());
  EXPECT_EQ(text(registry), "");
  Frame frame = frame_of({36.5, 40, 0});
  frame.sink().miss(1, ReadStatus::failed);
  frame.sink().miss(2, ReadStatus::unsupported);
  registry.commit(id, frame);
  EXPECT_EQ(text(registry),
            "# HELP gpu_temperature_celsius Temperature.\n"
            "# TYPE gpu_temperature_celsius gauge\n"
            "gpu_temperature_celsius{gpu=\"0\",uuid=\"u0\",sensor=\"core\"} 36.5\n");
}

TEST(Registry, HidesADeviceUntilItsNextCommit) {
  Registry registry;
  const std::vector<SeriesSpec> power = {{&kPower, {}}};
  const SourceId id = registry.attach("amd", device(0), power);
  registry.commit(id, frame_of({1}));
  registry.hide(id);
  EXPECT_EQ(text(registry), "");
  registry.commit(id, frame_of({2}));
  EXPECT_EQ(text(registry),
            "# HELP gpu_power_watts Power.\n# TYPE gpu_power_watts gauge\n"
            "gpu_power_watts{gpu=\"0\",uuid=\"u0\"} 2\n");
}

TEST(Registry, IgnoresACommitThatComesAfterDetach) {
  Registry registry;
  const std::vector<SeriesSpec> power = {{&kPower, {}}};
  const SourceId id = registry.attach("amd", device(0), power);
  registry.commit(id, frame_of({1}));
  registry.detach(id);
  registry.commit(id, frame_of({2}));
  registry.hide(id);
  registry.detach(id);
  EXPECT_EQ(text(registry), "");
}

TEST(Registry, NeverShowsASeriesTwiceAndPrefersTheYoungerSource) {
  Registry registry;
  const std::vector<SeriesSpec> power = {{&kPower, {}}, {&kPower, {}}};
  const SourceId old = registry.attach("amd", device(0), power);
  registry.commit(old, frame_of({1, 11}));
  const SourceId young = registry.attach("amd", device(0), power);
  registry.commit(young, frame_of({2, 22}));
  registry.commit(old, frame_of({3, 33}));
  const std::string header = "# HELP gpu_power_watts Power.\n# TYPE gpu_power_watts gauge\n";
  EXPECT_EQ(text(registry), header + "gpu_power_watts{gpu=\"0\",uuid=\"u0\"} 2\n");
  registry.detach(young);
  EXPECT_EQ(text(registry), header + "gpu_power_watts{gpu=\"0\",uuid=\"u0\"} 3\n");
}

TEST(Registry, ReplacesAPublishedSetAsAWhole) {
  Registry registry;
  const std::string header = "# HELP gpu_up Up.\n# TYPE gpu_up gauge\n";
  SeriesSet both;
  both.add(kUp, device(1), 1);
  both.add(kUp, device(0), 0);
  registry.publish("devices", both);
  EXPECT_EQ(text(registry), header + "gpu_up{gpu=\"0\",uuid=\"u0\"} 0\ngpu_up{gpu=\"1\",uuid=\"u1\"} 1\n");

  both.entries[0].value = 0.5;  // the same series, another value
  registry.publish("devices", both);
  EXPECT_EQ(text(registry), header + "gpu_up{gpu=\"0\",uuid=\"u0\"} 0\ngpu_up{gpu=\"1\",uuid=\"u1\"} 0.5\n");

  SeriesSet one;
  one.add(kUp, device(1), 1);
  registry.publish("devices", one);
  EXPECT_EQ(text(registry), header + "gpu_up{gpu=\"1\",uuid=\"u1\"} 1\n");

  registry.publish("devices", {});
  EXPECT_EQ(text(registry), "");
}

TEST(Registry, MergesSetsAndDevicesOfOneFamily) {
  Registry registry;
  const std::vector<SeriesSpec> power = {{&kPower, {}}};
  SeriesSet set;
  set.add(kPower, {}, 100);
  set.add(kPower, device(0), 1);
  set.add(kPower, device(2), 3);
  registry.publish("totals", set);
  registry.commit(registry.attach("amd", device(1), power), frame_of({2}));
  EXPECT_EQ(text(registry),
            "# HELP gpu_power_watts Power.\n# TYPE gpu_power_watts gauge\n"
            "gpu_power_watts{gpu=\"0\",uuid=\"u0\"} 1\n"
            "gpu_power_watts{gpu=\"1\",uuid=\"u1\"} 2\n"
            "gpu_power_watts{gpu=\"2\",uuid=\"u2\"} 3\n"
            "gpu_power_watts 100\n");
}

TEST(Registry, FiltersByCollectorAndKeepsWhatBelongsToNone) {
  Registry registry;
  const std::vector<SeriesSpec> power = {{&kPower, {}}};
  registry.commit(registry.attach("amd", device(0), power), frame_of({1}));
  registry.commit(registry.attach("nvidia", device(1), power), frame_of({2}));
  SeriesSet up{.collector = "amd", .entries = {}};
  up.add(kUp, device(0), 1);
  registry.publish("up/amd", up);
  SeriesSet self;
  self.add(kEnergy, {}, 5);
  registry.publish("self", self);
  const std::string of_none =
      "# HELP gpu_energy_joules_total Energy.\n# TYPE gpu_energy_joules_total counter\n"
      "gpu_energy_joules_total 5\n";
  const std::string nvidia =
      "# HELP gpu_power_watts Power.\n# TYPE gpu_power_watts gauge\n"
      "gpu_power_watts{gpu=\"1\",uuid=\"u1\"} 2\n";
  EXPECT_EQ(text(registry, {.collect = {"nvidia"}, .exclude = {}}), of_none + nvidia);
  EXPECT_EQ(text(registry, {.collect = {}, .exclude = {"amd"}}), of_none + nvidia);
  EXPECT_EQ(text(registry, {.collect = {}, .exclude = {"amd", "nvidia"}}), of_none);
  const std::string amd =
      "# HELP gpu_power_watts Power.\n# TYPE gpu_power_watts gauge\n"
      "gpu_power_watts{gpu=\"0\",uuid=\"u0\"} 1\n"
      "# HELP gpu_up Up.\n# TYPE gpu_up gauge\ngpu_up{gpu=\"0\",uuid=\"u0\"} 1\n";
  EXPECT_EQ(text(registry, {.collect = {"amd"}, .exclude = {}}), of_none + amd);
}

TEST(Registry, GrowsItsGenerationWithEveryChangeOfThePage) {
  Registry registry;
  const std::vector<SeriesSpec> power = {{&kPower, {}}};
  std::uint64_t last = registry.generation();
  const auto grew = [&] { return std::exchange(last, registry.generation()) < registry.generation(); };
  const SourceId id = registry.attach("amd", device(0), power);
  EXPECT_TRUE(grew());
  registry.commit(id, frame_of({1}));
  EXPECT_TRUE(grew());
  registry.hide(id);
  EXPECT_TRUE(grew());
  registry.hide(id);
  EXPECT_FALSE(grew());
  registry.publish("none", {});
  EXPECT_TRUE(grew());
  registry.detach(id);
  EXPECT_TRUE(grew());
  EXPECT_EQ(registry.render(Format::text).generation, registry.generation());
}

TEST(Registry, ShowsEachCommitWholeWhileLanesWrite) {
  Registry registry;
  const std::vector<SeriesSpec> pair = {{&kEnergy, {}}, {&kPower, {}}};
  const SourceId id = registry.attach("amd", device(0), pair);
  registry.commit(id, frame_of({0, 0}));
  std::atomic<bool> stop = false;
  std::thread lane([&] {
    for (int i = 0; !stop; i = (i + 1) % 1000) registry.commit(id, frame_of({double(i), double(i)}));
  });
  std::thread publisher([&] {
    while (!stop) {
      registry.publish("up", {});
      registry.detach(registry.attach("amd", device(1), pair));
    }
  });
  for (int i = 0; i < 1000; ++i) {
    const std::string page = text(registry);
    const auto number = [&](std::string_view prefix) {
      const std::size_t begin = page.find(prefix) + prefix.size();
      return page.substr(begin, page.find('\n', begin) - begin);
    };
    EXPECT_EQ(number("gpu_energy_joules_total{gpu=\"0\",uuid=\"u0\"} "),
              number("gpu_power_watts{gpu=\"0\",uuid=\"u0\"} "));
  }
  stop = true;
  lane.join();
  publisher.join();
}

constexpr MetricDescriptor kShare{"gpu_workload_share_ratio", "Share.", "ratio", MetricType::gauge};

/// Shares of workloads `names` on device 0, all of this value.
SeriesSet shares(const std::vector<std::string>& names, double value) {
  SeriesSet set{.collector = "amd", .entries = {}};
  for (const std::string& name : names) {
    set.add(kShare, device(0).with(std::vector<Label>{{"workload", name}}), value);
  }
  return set;
}

class RegistrySetOfADeviceTest : public testing::Test {
 protected:
  static std::string power(const char* value) {
    return "# HELP gpu_power_watts Power.\n# TYPE gpu_power_watts gauge\n"
           "gpu_power_watts{gpu=\"0\",uuid=\"u0\"} " +
           std::string(value) + "\n";
  }
  static std::string share(const std::vector<std::string>& names, const char* value) {
    std::string text = "# HELP gpu_workload_share_ratio Share.\n# TYPE gpu_workload_share_ratio gauge\n";
    for (const std::string& name : names) {
      text += "gpu_workload_share_ratio{gpu=\"0\",uuid=\"u0\",workload=\"" + name + "\"} " + value + "\n";
    }
    return text;
  }

  Registry registry_;
  const std::vector<SeriesSpec> specs_ = {{&kPower, {}}};
  const SourceId id_ = registry_.attach("amd", device(0), specs_);
};

TEST_F(RegistrySetOfADeviceTest, IsCommittedWithItsValues) {
  registry_.commit(id_, frame_of({1}), shares({"a", "b"}, 0.5));
  EXPECT_EQ(text(registry_), power("1") + share({"a", "b"}, "0.5"));
  registry_.commit(id_, frame_of({2}), shares({"a", "b"}, 0.25));
  EXPECT_EQ(text(registry_), power("2") + share({"a", "b"}, "0.25"));
  registry_.commit(id_, frame_of({3}), shares({"b"}, 1));
  EXPECT_EQ(text(registry_), power("3") + share({"b"}, "1"));
  registry_.commit(id_, frame_of({4}), {});
  EXPECT_EQ(text(registry_), power("4"));
}

TEST_F(RegistrySetOfADeviceTest, IsHiddenAndTakenAwayWithIt) {
  registry_.commit(id_, frame_of({1}), shares({"a"}, 1));
  registry_.hide(id_);
  EXPECT_EQ(text(registry_), "");
  registry_.commit(id_, frame_of({2}), shares({"a"}, 1));
  EXPECT_EQ(text(registry_), power("2") + share({"a"}, "1"));
  registry_.detach(id_);
  EXPECT_EQ(text(registry_), "");
  registry_.commit(id_, frame_of({3}), shares({"a"}, 1));
  EXPECT_EQ(text(registry_), "");
}

TEST_F(RegistrySetOfADeviceTest, BelongsToItsCollector) {
  registry_.commit(id_, frame_of({1}), shares({"a"}, 1));
  EXPECT_EQ(text(registry_, {.collect = {}, .exclude = {"amd"}}), "");
  EXPECT_EQ(text(registry_, {.collect = {"amd"}, .exclude = {}}), text(registry_));
}

TEST_F(RegistrySetOfADeviceTest, IsNotTakenForAnotherOfTheSameLength) {
  registry_.commit(id_, frame_of({1}), shares({"a", "bc"}, 1));
  registry_.commit(id_, frame_of({1}), shares({"ab", "c"}, 1));
  EXPECT_EQ(text(registry_), power("1") + share({"ab", "c"}, "1"));
}

TEST_F(RegistrySetOfADeviceTest, IsOnNoPageWithoutItsValues) {
  registry_.commit(id_, frame_of({0}), shares({"a"}, 0));
  std::atomic<bool> stop = false;
  std::thread lane([&] {
    for (int i = 0; !stop; i = (i + 1) % 1000) {
      const bool two = i % 7 == 0;
      registry_.commit(id_, frame_of({double(i)}),
                       shares(two ? std::vector<std::string>{"a", "b"} : std::vector<std::string>{"a"}, i));
    }
  });
  std::thread watchdog([&] {
    while (!stop) registry_.hide(id_);
  });
  for (int i = 0; i < 1000; ++i) {
    const std::string page = text(registry_);
    const auto number = [&](std::string_view prefix) {
      const std::size_t found = page.find(prefix);
      if (found == std::string::npos) return std::string("none");
      const std::size_t begin = found + prefix.size();
      return page.substr(begin, page.find('\n', begin) - begin);
    };
    EXPECT_EQ(number("gpu_power_watts{gpu=\"0\",uuid=\"u0\"} "),
              number("gpu_workload_share_ratio{gpu=\"0\",uuid=\"u0\",workload=\"a\"} "));
  }
  stop = true;
  lane.join();
  watchdog.join();
}

}  // namespace
}  // namespace gpumeter
