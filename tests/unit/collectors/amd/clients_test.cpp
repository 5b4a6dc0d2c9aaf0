// An AMD card with clients in /proc/PID/fdinfo.
#include <gtest/gtest.h>

#include "tests/fakes/amd_card_test.hpp"
#include "tests/fakes/fake_drm_users.hpp"

namespace gpumeter::amd {
namespace {

using enum EngineClass;
using std::chrono::seconds;
using Processes = std::vector<DeviceProcess>;

constexpr const char* kCard = "0000:0c:00.0";
constexpr double kGiB = 1 << 30;

class AmdClients : public OneCard {
 protected:
  void attach() {
    CollectorContext context{tree_.path(), "/proc", &kRealClock, {{"ids_file", {tree_ / "amdgpu.ids"}}}};
    context.drm_users = users_;
    collector_ = *open_amd(context);
    info_ = (*collector_->discover()).devices.at(0);
    device_ = collector_->device(info_);
    ASSERT_TRUE(device_->attach(info_));
    values_.assign(device_->series().size(), 0);
    statuses_.assign(device_->series().size(), ReadStatus::unsupported);
  }
  void pass(Tier tier, int at) {
    SampleSink sink(values_, statuses_);
    device_->sample({tier, seconds(at), seconds(10)}, sink);
  }
  Processes listed(int at) {
    pass(Tier::normal, at);
    Processes list;
    const Pass last{Tier::normal, seconds(at), seconds(10)};
    EXPECT_EQ(dynamic_cast<ListsProcesses&>(*device_).processes(last, list), ReadStatus::ok);
    return list;
  }
  void scan(int at, std::vector<DrmProcess> processes, EngineSeconds busy = {}) {
    DrmUse use;
    use.scanned_at = seconds(at);
    use.observed = seconds(at - 1);
    use.busy_seconds = busy;
    use.processes = std::move(processes);
    users_->scan(kCard, std::move(use));
  }
  std::optional<double> value(const MetricDescriptor& family, const std::string& label = "") {
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const SeriesSpec& series = device_->series()[i];
      const bool is_it = series.family == &family && (label.empty() || series.labels.at(0).value == label);
      if (is_it && statuses_[i] == ReadStatus::ok) return values_[i];
    }
    return std::nullopt;
  }
  std::string source_of_busy() {
    for (const SeriesSpec& series : device_->series()) {
      const bool is_it = series.family == &catalog::meter_source_info && series.labels[0].value == "busy";
      if (is_it) return series.labels[1].value;
    }
    return "";
  }

  const std::shared_ptr<FakeDrmUsers> users_ = std::make_shared<FakeDrmUsers>();
  std::unique_ptr<Device> device_;
  std::vector<double> values_;
  std::vector<ReadStatus> statuses_;
};

TEST_F(AmdClients, OfAGraphicsCardCountWithItsOwnMemory) {
  attach();
  scan(10, {{10, 1, engine_seconds({{graphics, 1}}), kGiB, 5 * kGiB}});
  listed(10);
  scan(20, {{10, 1, engine_seconds({{graphics, 3}, {copy, 1}}), kGiB, 5 * kGiB}});
  EXPECT_EQ(listed(20), (Processes{{10, kGiB, 2.0}}));
}

TEST_F(AmdClients, OfAnApuCountWithAllMemoryAndFitTheDevice) {
  write("mem_info_vram_used", "1000\n");
  write("mem_info_gtt_used", "5000\n");
  write("hwmon/hwmon3/name", "amdgpu\n");
  write("hwmon/hwmon3/in1_label", "vddnb\n");
  write("hwmon/hwmon3/in1_input", "615\n");
  attach();
  scan(10, {{10, 1, {}, 1000.0, 4000.0}, {20, 1, {}, {}, 2000.0, 0, 1500}});
  EXPECT_EQ(listed(10), (Processes{{10, 5000.0, {}}, {20, 1000.0, {}}}));
}

TEST_F(AmdClients, AndTheComputeDriversProcessesAreOneList) {
  tree_.write("class/kfd/kfd/topology/nodes/1/gpu_id", "7\n");
  tree_.write("class/kfd/kfd/topology/nodes/1/properties",
              "simd_count 416\nsimd_per_cu 4\ngfx_target_version 90010\nlocation_id 3072\ndomain 0\n");
  tree_.write("class/kfd/kfd/proc/10/vram_7", "3000\n");
  tree_.write("class/kfd/kfd/proc/10/stats_7/cu_occupancy", "52\n");
  tree_.write("class/kfd/kfd/proc/20/vram_7", "500\n");
  attach();
  EXPECT_EQ(listed(5), (Processes{{10, 3000.0, 5.0}, {20, 500.0, {}}}));  // before the first scan
  scan(10, {});
  listed(10);
  scan(20, {{20, 1, engine_seconds({{compute, 2}}), 700.0}, {30, 1, {}, 9.0}});
  EXPECT_EQ(listed(20), (Processes{{10, 3000.0, 5.0}, {20, 700.0, 2.0}, {30, 9.0, {}}}));
}

TEST_F(AmdClients, AreWatchedWhileTheDriverIsOpen) {
  EXPECT_EQ(users_->watches[kCard], 0);
  attach();
  EXPECT_EQ(users_->watches[kCard], 1);
  device_->release();
  EXPECT_EQ(users_->watches[kCard], 0);
  ASSERT_TRUE(device_->attach(info_));
  EXPECT_EQ(users_->watches[kCard], 1);
}

TEST_F(AmdClients, OfTheOldDriverAreNotWatched) {
  write("uevent", "DRIVER=radeon\nPCI_CLASS=30000\nPCI_ID=1002:73BF\n");
  attach();
  EXPECT_EQ(users_->watches[kCard], 0);
}

TEST_F(AmdClients, AreTheSourceOfUtilizationOnlyWithoutABetterOne) {
  attach();
  EXPECT_EQ(source_of_busy(), "fdinfo");
  scan(10, {}, engine_seconds({{graphics, 50}}));
  pass(Tier::fast, 10);
  EXPECT_EQ(value(catalog::busy_seconds), 0);
  EXPECT_EQ(value(catalog::utilization), std::nullopt);
  scan(20, {}, engine_seconds({{graphics, 52}, {copy, 4}}));
  pass(Tier::fast, 20);
  EXPECT_EQ(value(catalog::busy_seconds), 4);
  EXPECT_EQ(value(catalog::utilization), 0.4);
  pass(Tier::fast, 60);  // no scan for 40 s
  EXPECT_EQ(value(catalog::busy_seconds), std::nullopt);
  EXPECT_EQ(value(catalog::utilization), std::nullopt);

  write("gpu_busy_percent", "30\n");
  attach();
  EXPECT_EQ(source_of_busy(), "integrated");
  pass(Tier::fast, 70);
  EXPECT_EQ(value(catalog::utilization), 0.3);
  EXPECT_EQ(value(catalog::busy_seconds), 3);
}

}  // namespace
}  // namespace gpumeter::amd
