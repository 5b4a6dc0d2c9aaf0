#include "exporter/history/observe.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectors/api/catalog.hpp"
#include "exporter/store/series_list.hpp"

namespace gpumeter {
namespace {

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
