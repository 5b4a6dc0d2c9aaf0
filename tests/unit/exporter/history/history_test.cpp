#include "exporter/history/history.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "collectors/api/catalog.hpp"
#include "exporter/store/series_list.hpp"
#include "tests/fakes/fake_clock.hpp"

namespace gpumeter {
namespace {

using testing::ElementsAre;
using testing::IsNan;

Labels labels_of(unsigned index) {
  return {
      DeviceInfo{.uuid = "GPU-" + std::to_string(index), .vendor = "nvidia", .model = "H100"}, index, "", {}};
}

class HistoryTest : public testing::Test {
 protected:
  HistoryTest() { clock_.advance(std::chrono::seconds(1000)); }

  /// One second with this utilisation; nullopt: the GPU is lost.
  void second(std::optional<double> utilization, double xids = 0) {
    const Labels gpu = labels_of(0);
    up_.add(catalog::up, gpu, utilization ? 1 : 0);
    up_.commit(clock_.monotonic());
    if (utilization) {
      values_.add(catalog::utilization, gpu, *utilization);
      values_.add(catalog::throttled, gpu.with({{"cause", "current"}}), *utilization > 0.9 ? 1 : 0);
      values_.add(catalog::throttled, gpu.with({{"cause", "hardware"}}), 0);
      values_.add(catalog::throttled, gpu.with({{"cause", "software"}}), 1);
      values_.add(catalog::xid_errors, gpu.with({{"xid", "79"}}), xids);
    }
    values_.commit(clock_.monotonic());
    sample();
  }
  void sample() {
    history_.sample();
    clock_.advance(std::chrono::seconds(1));
  }
  std::vector<float> column(Quantity quantity) const {
    return history_.of_gpu("0", "", Range::minutes)->stretch.columns[index_of(quantity)].mean;
  }
  std::vector<std::pair<std::int64_t, std::string>> events() const {
    std::vector<std::pair<std::int64_t, std::string>> found;
    const auto answer = history_.of_gpu("0", "", Range::minutes);
    for (const GpuEvent& event : answer->events)
      found.emplace_back(event.second,
                         event.name + (event.kind == GpuEvent::Kind::finding_ended ? " ended" : ""));
    return found;
  }

  FakeClock clock_;
  Store store_;
  SeriesList up_{store_.attach("nvidia")};
  SeriesList values_{store_.attach("nvidia")};
  History history_{store_, clock_};
};

TEST_F(HistoryTest, RecordsTheStoreEachSecond) {
  second(0.5);
  second(1);
  EXPECT_THAT(column(Quantity::utilization), ElementsAre(0.5F, 1));
  EXPECT_THAT(column(Quantity::throttled_hardware), ElementsAre(0, 1));
  EXPECT_THAT(column(Quantity::power), ElementsAre(IsNan(), IsNan()));
  const auto answer = history_.of_gpu("", "GPU-0", Range::minutes);
  EXPECT_EQ(answer->stretch.first_second, 1000);
  EXPECT_EQ(answer->epoch_seconds, to_seconds(FakeClock::kEpoch));
  EXPECT_FALSE(history_.of_gpu("1", "", Range::minutes));
}

TEST_F(HistoryTest, ALostGpuKeepsItsHistory) {
  second(0.5);
  second(std::nullopt);
  second(0.25);
  EXPECT_THAT(column(Quantity::utilization), ElementsAre(0.5F, IsNan(), 0.25F));
  EXPECT_THAT(events(), ElementsAre(std::pair(1001, "lost"), std::pair(1002, "read_again")));
}

TEST_F(HistoryTest, AForgottenGpuLeavesAfterSixHours) {
  second(0.5);
  values_.commit({});
  up_.commit({});
  sample();
  EXPECT_TRUE(history_.picture()->gpus.empty());
  EXPECT_TRUE(history_.of_gpu("0", "", Range::hours));
  clock_.advance(std::chrono::hours(6));
  sample();
  EXPECT_FALSE(history_.of_gpu("0", "", Range::hours));
}

TEST_F(HistoryTest, ARiseOfACounterIsAnEventAndItsFirstValueIsNone) {
  second(0, 3);
  second(0, 3);
  second(0, 4);
  second(std::nullopt);
  second(0, 4);
  EXPECT_THAT(events(),
              ElementsAre(std::pair(1002, "xid_79"), std::pair(1003, "lost"), std::pair(1004, "read_again")));
}

TEST_F(HistoryTest, ReasonsBeginAndEnd) {
  constexpr MetricDescriptor kReason{"gpu_health_reason", "Reason.", "", MetricType::gauge};
  SeriesList health(store_.attach());
  second(0);
  health.add(
      kReason,
      labels_of(0).with({{"reason", "thermal_throttling"}, {"severity", "degraded"}, {"action", "drain"}}),
      1);
  health.commit({});
  second(0);
  EXPECT_EQ(history_.picture()->gpus[0].reasons,
            (std::vector<GpuReason>{{"thermal_throttling", "degraded", "drain"}}));
  health.commit({});
  second(0);
  EXPECT_THAT(events(), ElementsAre(std::pair(1001, "thermal_throttling"),
                                    std::pair(1002, "thermal_throttling ended")));
}

TEST_F(HistoryTest, TimeAsleepIsAGap) {
  second(0.5);
  clock_.suspend(std::chrono::seconds(2));
  second(0.25);
  EXPECT_THAT(column(Quantity::utilization), ElementsAre(0.5F, IsNan(), IsNan(), 0.25F));
}

TEST_F(HistoryTest, KeepsTheGpusOfTheLastSamplesOnly) {
  SeriesList many(store_.attach("nvidia"));
  for (unsigned round = 0; round < 2; ++round) {
    for (unsigned i = 0; i < 600; ++i) many.add(catalog::up, labels_of(1 + round * 600 + i), 1);
    many.commit({});
    sample();
  }
  EXPECT_TRUE(history_.of_gpu("1200", "", Range::minutes));
  std::size_t kept = 0;
  for (unsigned i = 1; i <= 1200; ++i)
    kept += history_.of_gpu(std::to_string(i), "", Range::minutes) ? 1U : 0U;
  EXPECT_EQ(kept, History::kMostGpus);
}

TEST_F(HistoryTest, ARunHasItsRateAndLoss) {
  const Labels run = Labels{{"run", "bert"}, {"user", "ann"}};
  SeriesList runs(store_.attach());
  for (int i = 0; i < 40; ++i) {
    runs.add(catalog::ml_steps, run.with({{"split", "train"}}), 2 * i);
    runs.add(catalog::ml_loss, run.with({{"split", "train"}}), 4 - i / 16.0);
    runs.add(catalog::ml_loss, run.with({{"split", "eval"}}), 9);
    runs.commit({});
    sample();
  }
  const auto answer = history_.of_run({"bert", "ann"}, Range::minutes);
  EXPECT_THAT(answer->stretch.columns[0].mean[0], IsNan());
  EXPECT_EQ(answer->stretch.columns[0].mean[39], 2);
  EXPECT_EQ(answer->stretch.columns[1].mean[16], 3);
  EXPECT_EQ(history_.picture()->runs[0].steps_per_second, 2);
  runs.commit({});
  sample();
  EXPECT_FALSE(history_.of_run({"bert", "ann"}, Range::minutes));
}

TEST_F(HistoryTest, ARateIsOfTheTimesOfTheUpdates) {
  const Labels run = Labels{{"run", "bert"}, {"user", "ann"}};
  SeriesList runs(store_.attach());
  const auto rate_after = [&](double updated, double samples) {
    runs.add(catalog::ml_last_update_timestamp, run, updated);
    runs.add(catalog::ml_samples, run.with({{"split", "train"}}), samples);
    runs.commit({});
    sample();
    return history_.picture()->runs[0].samples_per_second;
  };
  const double begin = to_seconds(clock_.realtime());
  // A message of 175 samples every 250 ms; the samples of the history fall between them.
  EXPECT_THAT(rate_after(begin + 0.9, 350), IsNan());
  EXPECT_NEAR(rate_after(begin + 1.65, 875), 700, 1e-3);
  EXPECT_NEAR(rate_after(begin + 2.9, 1750), 700, 1e-3);
  // It stands still: as long as it worked, nothing is known; then the rate falls.
  EXPECT_NEAR(rate_after(begin + 2.9, 1750), 700, 1e-3);
  double last = 700;
  for (int i = 0; i < 30; ++i) last = rate_after(begin + 2.9, 1750);
  EXPECT_EQ(last, 0);
}

TEST_F(HistoryTest, ANewRunReplacesOneThatHasEnded) {
  constexpr int kMost = History::kMostRuns;
  SeriesList runs(store_.attach());
  const auto second = [&](int ended, int count) {
    for (int i = 0; i < count; ++i) {
      const Labels run = Labels{{"run", std::to_string(i)}, {"user", "ann"}};
      runs.add(catalog::ml_steps, run.with({{"split", "train"}}), 1);
      if (i < ended) runs.add(catalog::ml_run_stop_timestamp, run.with({{"status", "success"}}), 1);
    }
    runs.commit({});
    sample();
  };
  const auto seconds_of = [&](int run) {
    const auto answer = history_.of_run({std::to_string(run), "ann"}, Range::minutes);
    return answer ? answer->stretch.length : 0;
  };
  second(0, kMost);
  for (int i = 0; i < 3; ++i) second(0, kMost + 1);
  EXPECT_EQ(seconds_of(0), 4U) << "no run displaces one that goes on";
  EXPECT_EQ(seconds_of(kMost), 0U);
  second(1, kMost);
  second(2, kMost);
  for (int i = 0; i < 2; ++i) second(2, kMost + 1);
  EXPECT_EQ(seconds_of(0), 0U) << "the first that ended makes room, and does not come back";
  EXPECT_EQ(seconds_of(1), 8U);
  EXPECT_EQ(seconds_of(kMost), 2U);
}

TEST_F(HistoryTest, SparklinesAreInTheOrderOfThePicture) {
  second(0.5);
  const auto lines = history_.sparklines();
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_EQ(lines[0].size(), 300U);
  EXPECT_EQ(lines[0].back(), 0.5F);
}

using testing::ElementsAre;

class ObserveTest : public testing::Test {
 protected:
  const Labels gpu_{DeviceInfo{.uuid = "GPU-a", .vendor = "amd", .model = "MI300X"}, 2, "", {}};
  Store store_;
  SeriesList list_{store_.attach("amd")};

  void add(const MetricDescriptor& family, double value, std::initializer_list<Label> labels = {}) {
    list_.add(family, gpu_.with(labels), value);
  }
  GpuPicture gpu() {
    add(catalog::up, 1);
    list_.commit({});
    return observe(store_).gpus.at(0);
  }
};

TEST_F(ObserveTest, TakesTheIdentityFromLabels) {
  add(catalog::info, 1, {{"pci_address", "0000:03:00.0"}, {"name", "left"}});
  const GpuPicture gpu = this->gpu();
  EXPECT_EQ(gpu.index, 2U);
  EXPECT_EQ(gpu.gpu + gpu.uuid + gpu.vendor + gpu.model + gpu.pci_address + gpu.name,
            "2GPU-aamdMI300X0000:03:00.0left");
}

TEST_F(ObserveTest, PrefersOneOfSeveralSeries) {
  add(catalog::clock, 2e9, {{"clock", "sm"}});
  add(catalog::clock, 1e9, {{"clock", "graphics"}});
  add(catalog::clock, 3e9, {{"clock", "memory"}});
  add(catalog::power_limit, 700, {{"limit", "max"}});
  add(catalog::power_limit, 500, {{"limit", "enforced"}});
  add(catalog::temperature, 80, {{"sensor", "hotspot"}});
  add(catalog::temperature_margin, 20, {{"sensor", "hotspot"}});
  add(catalog::temperature_margin, 5, {{"sensor", "memory"}});
  add(catalog::memory_used, 7, {{"memory", "gtt"}});
  const GpuPicture gpu = this->gpu();
  EXPECT_EQ(gpu.values[index_of(Quantity::clock)], 1e9);
  EXPECT_EQ(gpu.values[index_of(Quantity::power_limit)], 500);
  EXPECT_EQ(gpu.values[index_of(Quantity::temperature)], 80);
  EXPECT_EQ(gpu.values[index_of(Quantity::margin)], 5);
  EXPECT_THAT(gpu.values[index_of(Quantity::memory_used)], testing::IsNan());
}

TEST_F(ObserveTest, NamesTheHoldersTheLargestFirst) {
  SeriesList others(store_.attach());
  others.add(catalog::workload_info, {{"kind", "pod"}, {"workload", "b"}, {"user", "ann"}}, 1);
  others.add(catalog::ml_run_gpu_info, {{"run", "bert"}, {"user", "ann"}, {"gpu", "2"}, {"uuid", "GPU-a"}},
             1);
  others.commit({});
  add(catalog::workload_share, 0.25, {{"kind", "pod"}, {"workload", "a"}});
  add(catalog::workload_share, 0.75, {{"kind", "pod"}, {"workload", "b"}});
  add(catalog::workload_share, 0, {{"kind", "pod"}, {"workload", "gone"}});
  const GpuPicture gpu = this->gpu();
  ASSERT_EQ(gpu.holders.size(), 2U);
  EXPECT_EQ(gpu.holders[0].workload + gpu.holders[0].user, "bann");
  EXPECT_EQ(gpu.holders[1].workload + gpu.holders[1].user, "a");
  EXPECT_EQ(gpu.runs, (std::vector<GpuRun>{{"bert", "ann"}}));
}

TEST_F(ObserveTest, ListsTheCausesThatHold) {
  add(catalog::throttled, 1, {{"cause", "power"}});
  add(catalog::throttled, 0, {{"cause", "thermal"}});
  add(catalog::throttled, 1, {{"cause", "sync"}});
  EXPECT_THAT(gpu().throttled, ElementsAre("power"));
}

TEST_F(ObserveTest, AGpuWithoutUpIsLeftOut) {
  add(catalog::utilization, 1);
  list_.commit({});
  EXPECT_TRUE(observe(store_).gpus.empty());
}

TEST_F(ObserveTest, ReadsARun) {
  SeriesList runs(store_.attach());
  const Labels run{{"run", "bert"}, {"user", "ann"}};
  runs.add(catalog::ml_steps, run.with({{"split", "train"}}), 10);
  runs.add(catalog::ml_steps, run.with({{"split", "eval"}}), 2);
  runs.add(catalog::ml_phase_seconds, run.with({{"phase", "forward"}}), 3);
  runs.add(catalog::ml_run_stop_timestamp, run.with({{"status", "lost"}}), 100);
  runs.commit({});
  const RunPicture picture = observe(store_).runs.at(0);
  EXPECT_EQ(picture.run + picture.user + picture.status, "bertannlost");
  EXPECT_EQ(picture.steps, 12);
  EXPECT_THAT(picture.phase_seconds, ElementsAre(std::pair("forward", 3.0)));
}

}  // namespace
}  // namespace gpumeter
