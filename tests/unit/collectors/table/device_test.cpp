#include "collectors/table/device.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "collectors/api/catalog.hpp"

namespace gpumeter {
namespace {

/// A device whose readings a test sets by name.
struct Bench {
  std::map<std::string, Sample> sources;
  Readiness readiness = Readiness::awake;
  int reads = 0;
};

struct BenchContext {
  Bench* bench;

  Result<Done> open(const DeviceInfo&) { return Done{}; }
  void close() noexcept {}
  Readiness begin_pass(const Pass&) noexcept { return bench->readiness; }
};

Reader bind_source(BenchContext& context, const ReadSource& source) {
  const std::string name(source.name);
  if (!context.bench->sources.contains(name)) return {};
  return [&bench = *context.bench, name] {
    ++bench.reads;
    return bench.sources.at(name);
  };
}

constexpr RowSource<BenchContext> source(std::string_view name) { return {bind_source, {name}}; }

constexpr LabelSet kCore("sensor", "core");
// clang-format off
constexpr MetricRow<BenchContext> kRows[] = {
    {&catalog::utilization, {}, source("busy"), kPercent, Tier::fast, averaged(catalog::busy_seconds), kRatio},
    {&catalog::energy_joules, {}, source("energy"), kMilli, Tier::fast},
    {&catalog::power, {}, source("power_average"), kMicro, Tier::fast, averaged(catalog::energy_joules).with(kPowerExtremes)},
    {&catalog::power, {}, source("power_input"), kMicro, Tier::fast, instantaneous(catalog::energy_joules)},
    {&catalog::temperature, kCore, source("temp"), kMilli, Tier::normal, {}, kZeroIsUnknown},
    {&catalog::pcie_replays, {}, source("replays"), 1, Tier::slow},
    {&catalog::memory_used, LabelSet("memory", "vram"), source("vram"), 1, Tier::fast, {}, kNeverWakes},
};
// clang-format on
static_assert(valid_table(kRows));

constexpr MetricRow<BenchContext> kWithoutScale[] = {
    {&catalog::power, {}, source("power_input"), 0, Tier::fast}};
static_assert(!valid_table(kWithoutScale));
constexpr MetricRow<BenchContext> kCounterOfACounter[] = {
    {&catalog::energy_joules, {}, source("energy"), 1, Tier::fast, averaged(catalog::energy_joules)}};
static_assert(!valid_table(kCounterOfACounter));

/// The table on a bench, and the values in its slots, as text.
class TableTest : public testing::Test {
 protected:
  void attach() {
    ASSERT_TRUE(device_.attach({}));
    values_.assign(device_.series().size(), 0);
    statuses_.assign(device_.series().size(), ReadStatus::unsupported);
    sink_.emplace(values_, statuses_);
  }
  PassOutcome pass(Tier tier, std::chrono::milliseconds elapsed, const YieldCheck* yield = nullptr) {
    now_ += std::chrono::seconds(1);
    return device_.sample({tier, now_, elapsed, yield}, *sink_);
  }
  /// Everything except gpu_meter_source_info, or only that.
  std::map<std::string, double> page(bool sources = false) const {
    std::map<std::string, double> page;
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const SeriesSpec& series = device_.series()[i];
      const bool is_source = series.family == &catalog::meter_source_info;
      if (statuses_[i] != ReadStatus::ok || is_source != sources) continue;
      std::string name(series.family->name);
      for (const Label& label : series.labels) name += " " + label.value;
      page[name] = values_[i];
    }
    return page;
  }
  using Page = std::map<std::string, double>;

  Bench bench_;
  TableDevice<BenchContext> device_{BenchContext{&bench_}, kRows};
  Nanoseconds now_{0};
  std::vector<double> values_;
  std::vector<ReadStatus> statuses_;
  std::optional<SampleSink> sink_;
};

using std::chrono::seconds;

TEST_F(TableTest, GivenAReadingThenGaugeCounterAndExtremesFollow) {
  bench_.sources = {{"busy", Sample::of(40)}, {"power_average", Sample::of(100e6)}};
  attach();
  pass(Tier::fast, seconds(0));
  bench_.sources["power_average"] = Sample::of(300e6);
  pass(Tier::fast, seconds(1));
  EXPECT_EQ(page(), (Page{{"gpu_utilization_ratio", 0.4},
                          {"gpu_busy_seconds_total", 0.4},
                          {"gpu_power_watts", 300},
                          {"gpu_energy_joules_total", 300},
                          {"gpu_power_max_watts 1m", 300},
                          {"gpu_power_min_watts 1m", 100}}));
}

TEST_F(TableTest, TheFirstSourceThatIsThereWins) {
  bench_.sources = {{"power_average", Sample::of(5e6)}, {"power_input", Sample::of(7e6)}};
  attach();
  pass(Tier::fast, seconds(0));
  EXPECT_EQ(page().at("gpu_power_watts"), 5);

  bench_.sources.erase("power_average");  // like after loading another driver
  attach();
  pass(Tier::fast, seconds(0));
  EXPECT_EQ(page(), (Page{{"gpu_power_watts", 7}, {"gpu_energy_joules_total", 0}}));
}

TEST_F(TableTest, ACounterGoesOnWhenADeviceComesBackWithAnotherSource) {
  bench_.sources = {{"power_average", Sample::of(5e6)}, {"power_input", Sample::of(7e6)}};
  attach();
  pass(Tier::fast, seconds(0));
  pass(Tier::fast, seconds(2));
  bench_.sources.erase("power_average");
  attach();
  pass(Tier::fast, seconds(0));
  EXPECT_EQ(page().at("gpu_energy_joules_total"), 10);
}

TEST_F(TableTest, AHardwareCounterKeepsTheIntegratedOneOut) {
  bench_.sources = {{"energy", Sample::of(3000)}, {"power_average", Sample::of(5e6)}};
  attach();
  pass(Tier::fast, seconds(0));
  pass(Tier::fast, seconds(2));
  EXPECT_EQ(page(), (Page{{"gpu_energy_joules_total", 3},
                          {"gpu_power_watts", 5},
                          {"gpu_power_max_watts 1m", 5},
                          {"gpu_power_min_watts 1m", 5}}));
}

TEST_F(TableTest, SaysWhereCountersComeFromOnceTheyCount) {
  bench_.sources = {{"busy", Sample::of(1)},
                    {"replays", Sample::of(3)},
                    {"power_average", Sample::miss(ReadStatus::unsupported)}};
  attach();
  pass(Tier::once, seconds(0));
  EXPECT_EQ(page(true), Page{});
  pass(Tier::fast, seconds(0));
  pass(Tier::slow, seconds(0));
  EXPECT_EQ(page(true), (Page{{"gpu_meter_source_info busy integrated", 1},
                              {"gpu_meter_source_info pcie_replays hardware", 1}}));
}

TEST_F(TableTest, AGaugeLeavesAtTheFirstFailureACounterAfterThree) {
  bench_.sources = {{"busy", Sample::of(50)}};
  attach();
  pass(Tier::fast, seconds(0));
  pass(Tier::fast, seconds(1));
  bench_.sources["busy"] = Sample::miss(ReadStatus::failed);
  pass(Tier::fast, seconds(1));
  EXPECT_EQ(page(), (Page{{"gpu_busy_seconds_total", 0.5}}));
  pass(Tier::fast, seconds(1));
  pass(Tier::fast, seconds(1));
  EXPECT_EQ(page(), Page{});
  EXPECT_EQ(sink_->errors()[static_cast<std::size_t>(ReadStatus::failed)], 3u);

  bench_.sources["busy"] = Sample::of(50);
  pass(Tier::fast, seconds(1));
  EXPECT_EQ(page(), (Page{{"gpu_utilization_ratio", 0.5}, {"gpu_busy_seconds_total", 1.0}}));
}

TEST_F(TableTest, OutOfRangeIsAFailedRead) {
  bench_.sources = {{"busy", Sample::of(101)}};
  attach();
  pass(Tier::fast, seconds(0));
  EXPECT_EQ(page(), Page{});
  EXPECT_EQ(sink_->errors()[static_cast<std::size_t>(ReadStatus::out_of_range)], 1u);
}

TEST_F(TableTest, ZeroThatMeansUnknownIsAbsentAndNoError) {
  bench_.sources = {{"temp", Sample::of(0)}};
  attach();
  pass(Tier::normal, seconds(0));
  EXPECT_EQ(page(), Page{});
  EXPECT_EQ(sink_->errors(), ReadErrors{});
  bench_.sources["temp"] = Sample::of(41000);
  pass(Tier::normal, seconds(0));
  EXPECT_EQ(page(), (Page{{"gpu_temperature_celsius core", 41}}));
}

TEST_F(TableTest, WhatIsUnsupportedIsTriedAgainAfterFiveMinutes) {
  bench_.sources = {{"temp", Sample::miss(ReadStatus::unsupported)}};
  attach();
  pass(Tier::normal, seconds(0));
  pass(Tier::normal, seconds(0));
  EXPECT_EQ(bench_.reads, 1);
  bench_.sources["temp"] = Sample::of(40000);
  now_ += seconds(300);
  pass(Tier::normal, seconds(0));
  EXPECT_EQ(page(), (Page{{"gpu_temperature_celsius core", 40}}));
}

// A card in reset answers like this for a moment.
TEST_F(TableTest, ASourceThatHadAValueIsReadAgainAtOnceAndItsFailureCounted) {
  bench_.sources = {{"busy", Sample::of(50)}};
  attach();
  pass(Tier::fast, seconds(0));
  bench_.sources["busy"] = Sample::miss(ReadStatus::unsupported);
  EXPECT_EQ(pass(Tier::fast, seconds(1)), PassOutcome::unread);
  EXPECT_EQ(page(), (Page{{"gpu_busy_seconds_total", 0}}));
  EXPECT_EQ(sink_->errors()[static_cast<std::size_t>(ReadStatus::unsupported)], 1u);
  bench_.sources["busy"] = Sample::of(50);
  EXPECT_EQ(pass(Tier::fast, seconds(2)), PassOutcome::complete);
  EXPECT_EQ(page(), (Page{{"gpu_utilization_ratio", 0.5}, {"gpu_busy_seconds_total", 1}}));
}

TEST_F(TableTest, WhereOneIntegralLacksAReadingNoneAdvances) {
  bench_.sources = {{"busy", Sample::of(50)}, {"power_input", Sample::of(100e6)}};
  attach();
  pass(Tier::fast, seconds(0));
  pass(Tier::fast, seconds(1));
  bench_.sources["power_input"] = Sample::miss(ReadStatus::failed);
  EXPECT_EQ(pass(Tier::fast, seconds(1)), PassOutcome::partial);
  EXPECT_EQ(page(), (Page{{"gpu_utilization_ratio", 0.5},
                          {"gpu_busy_seconds_total", 0.5},
                          {"gpu_energy_joules_total", 100}}));
  bench_.sources["power_input"] = Sample::of(200e6);
  EXPECT_EQ(pass(Tier::fast, seconds(2)), PassOutcome::complete);  // the time since the last complete pass
  EXPECT_EQ(page(), (Page{{"gpu_utilization_ratio", 0.5},
                          {"gpu_busy_seconds_total", 1.5},
                          {"gpu_power_watts", 200},
                          {"gpu_energy_joules_total", 400}}));
}

TEST_F(TableTest, ACounterWhoseSourceFailsForAMinuteHoldsUpTheOthersNoLonger) {
  bench_.sources = {{"busy", Sample::of(50)}, {"power_input", Sample::of(100e6)}};
  attach();
  pass(Tier::fast, seconds(0));
  bench_.sources["power_input"] = Sample::miss(ReadStatus::unsupported);
  for (int i = 0; i < 60; ++i) EXPECT_EQ(pass(Tier::fast, seconds(0)), PassOutcome::partial);
  EXPECT_EQ(pass(Tier::fast, seconds(0)), PassOutcome::complete);
  pass(Tier::fast, seconds(1));
  EXPECT_EQ(page(), (Page{{"gpu_utilization_ratio", 0.5}, {"gpu_busy_seconds_total", 0.5}}));
  bench_.sources["power_input"] = Sample::of(300e6);  // the time before is unknown
  EXPECT_EQ(pass(Tier::fast, seconds(1)), PassOutcome::complete);
  EXPECT_EQ(page().at("gpu_energy_joules_total"), 0);
}

TEST_F(TableTest, ARowThatNeverHadAValueHoldsUpNobody) {
  bench_.sources = {{"busy", Sample::of(50)}, {"power_input", Sample::miss(ReadStatus::denied)}};
  attach();
  EXPECT_EQ(pass(Tier::fast, seconds(0)), PassOutcome::complete);
}

TEST_F(TableTest, WhatIsAnsweredWithoutTheDeviceIsNoGoodReading) {
  bench_.sources = {{"busy", Sample::miss(ReadStatus::timeout)}, {"vram", Sample::of(64)}};
  attach();
  EXPECT_EQ(pass(Tier::fast, seconds(0)), PassOutcome::unread);
  EXPECT_EQ(page(), (Page{{"gpu_memory_used_bytes vram", 64}}));
}

TEST_F(TableTest, ASleepingDeviceIsReadOnlyWhereThatDoesNotWakeIt) {
  bench_.sources = {{"busy", Sample::of(100)}, {"vram", Sample::of(64)}};
  attach();
  pass(Tier::fast, seconds(0));
  pass(Tier::fast, seconds(1));
  bench_.readiness = Readiness::asleep;
  EXPECT_EQ(pass(Tier::fast, seconds(1)), PassOutcome::asleep);
  EXPECT_EQ(page(), (Page{{"gpu_busy_seconds_total", 1}, {"gpu_memory_used_bytes vram", 64}}));
}

TEST_F(TableTest, ADeviceThatIsGoneIsNotRead) {
  bench_.sources = {{"busy", Sample::of(100)}};
  attach();
  bench_.readiness = Readiness::gone;
  EXPECT_EQ(pass(Tier::fast, seconds(0)), PassOutcome::gone);
  EXPECT_EQ(bench_.reads, 0);
}

TEST_F(TableTest, CountersGoOnWhenADeviceComesBack) {
  bench_.sources = {{"busy", Sample::of(100)}, {"replays", Sample::of(9)}};
  attach();
  pass(Tier::fast, seconds(0));
  pass(Tier::fast, seconds(2));
  pass(Tier::slow, seconds(0));
  bench_.sources["replays"] = Sample::of(1);  // the hardware was reset
  attach();
  pass(Tier::fast, seconds(0));
  pass(Tier::slow, seconds(0));
  EXPECT_EQ(
      page(),
      (Page{{"gpu_utilization_ratio", 1}, {"gpu_busy_seconds_total", 2}, {"gpu_pcie_replays_total", 10}}));
}

class YieldAfter final : public YieldCheck {
 public:
  explicit YieldAfter(int rows) : left_(rows) {}
  bool should_yield() const noexcept override { return left_-- <= 0; }

 private:
  mutable int left_;
};

TEST_F(TableTest, APassStepsAsideBetweenRowsAndGoesOnWhereItWas) {
  bench_.sources = {{"busy", Sample::of(1)}, {"power_average", Sample::of(1e6)}, {"vram", Sample::of(2)}};
  attach();
  const YieldAfter first_row(1);
  EXPECT_EQ(pass(Tier::fast, seconds(0), &first_row), PassOutcome::interrupted);
  EXPECT_EQ(bench_.reads, 1);
  EXPECT_EQ(pass(Tier::fast, seconds(0)), PassOutcome::complete);
  EXPECT_EQ(bench_.reads, 3);
}

}  // namespace
}  // namespace gpumeter
