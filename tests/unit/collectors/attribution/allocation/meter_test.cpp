#include "collectors/attribution/allocation/meter.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "collectors/api/catalog.hpp"

namespace gpumeter::allocation {
namespace {

using workloads::Allocation;
using workloads::AllocationSource;
using workloads::DeviceSelector;
using workloads::WorkloadId;

const WorkloadId kJob = {cgroup::Kind::slurm_job, "7"};
const WorkloadId kPod = {cgroup::Kind::pod, "uid-1"};

DeviceIdentity device(unsigned index, const std::string& uuid, const std::string& address,
                      const std::string& minor) {
  DeviceIdentity device;
  device.index = index;
  device.info.uuid = uuid;
  device.info.vendor = "nvidia";
  device.info.pci_address = address;
  device.info.minor = minor;
  return device;
}

/// A machine whose minors are not in the order of its PCI addresses.
class MeterTest : public testing::Test {
 protected:
  void give(DeviceSelector::By by, const std::string& id, const WorkloadId& to = kJob,
            AllocationSource source = AllocationSource::slurm) {
    given.push_back({.device = {by, id, ""}, .workload = to, .source = source});
  }
  void busy(const std::string& uuid, double seconds, const std::string& partition = "") {
    readings.busy[{uuid, partition}] = {seconds, now_};
  }
  void seconds_later(int seconds) { now_ += std::chrono::seconds(seconds); }
  void update() { meter.update(given, devices, readings, now_); }
  std::string text() const {
    Store store;
    SeriesList list(store.attach());
    meter.write(list);
    list.commit(now_);
    std::string text;
    store.walk([&](const Family& family) {
      family.for_each([&](const Series& it) {
        text += family.descriptor().name;
        for (const auto& [name, value] : it.labels().pairs()) {
          text += " " + std::string(name) + "=" + std::string(value);
        }
        char value[32];
        std::snprintf(value, sizeof value, " %.0f\n", it.value());
        text += value;
      });
    });
    return text;
  }

  std::vector<DeviceIdentity> devices = {device(0, "GPU-a", "0000:0c:00.0", "2"),
                                         device(1, "GPU-b", "0000:2c:00.0", "0")};
  Readings readings;
  std::vector<Allocation> given;
  Meter meter{{}};

 private:
  Nanoseconds now_ = std::chrono::seconds(1000);
};

TEST_F(MeterTest, FindsADeviceByEachOfItsNames) {
  readings.partitions = {{{"GPU-b", "1g.18gb:7"}, "MIG-1", "7"}};
  give(DeviceSelector::By::uuid, "GPU-b");
  give(DeviceSelector::By::pci_address, "0000:2c:00.0", kPod, AllocationSource::kubelet);
  give(DeviceSelector::By::minor, "0", kPod, AllocationSource::dra);
  give(DeviceSelector::By::position, "0", kPod, AllocationSource::manual);
  give(DeviceSelector::By::uuid, "MIG-1");
  give(DeviceSelector::By::uuid, "MIG-GPU-GPU-b/7/0", kPod);
  give(DeviceSelector::By::uuid, "MIG-GPU-b/7/0", kPod);
  give(DeviceSelector::By::position, "2");
  update();

  EXPECT_EQ(
      text(),
      "gpu_allocation_info gpu=0 uuid=GPU-a kind=pod workload=uid-1 source=manual 1\n"
      "gpu_allocation_info gpu=1 uuid=GPU-b kind=pod workload=uid-1 source=kubelet 1\n"
      "gpu_allocation_info gpu=1 uuid=GPU-b kind=pod workload=uid-1 source=dra 1\n"
      "gpu_allocation_info gpu=1 uuid=GPU-b kind=slurm_job workload=7 source=slurm 1\n"
      "gpu_allocation_info gpu=1 uuid=GPU-b partition=1g.18gb:7 kind=pod workload=uid-1 source=slurm 1\n"
      "gpu_allocation_info gpu=1 uuid=GPU-b partition=1g.18gb:7 kind=slurm_job workload=7 source=slurm 1\n");
  ASSERT_EQ(meter.unresolved().size(), 2U);
  EXPECT_EQ(meter.unresolved()[0].device.id, "MIG-GPU-GPU-b/7/0");
  EXPECT_EQ(meter.unresolved()[1].device.id, "2");
}

TEST_F(MeterTest, CountsTheTimeInWhichAGivenGpuIsIdle) {
  give(DeviceSelector::By::uuid, "GPU-a");
  given[0].since = std::chrono::seconds(1'700'000'000);
  const auto after = [&](int seconds, double total) {
    seconds_later(seconds);
    busy("GPU-a", total);
    update();
    const std::string page = text();
    return page.substr(0, page.find('\n'));
  };
  const std::string series = "gpu_allocated_idle_seconds_total gpu=0 uuid=GPU-a kind=slurm_job workload=7 ";
  EXPECT_EQ(after(0, 50), series + "0");
  EXPECT_EQ(after(9, 50), series + "0");       // shorter than a mean
  EXPECT_EQ(after(1, 50), series + "10");      // idle
  EXPECT_EQ(after(10, 50.2), series + "10");   // 2 %
  EXPECT_EQ(after(10, 50.25), series + "20");  // 0.5 %
  EXPECT_EQ(after(5, 0), series + "20");       // the counter began again
  EXPECT_EQ(after(10, 0), series + "30");
  EXPECT_NE(text().find("gpu_allocation_start_timestamp_seconds gpu=0 uuid=GPU-a kind=slurm_job workload=7 "
                        "1700000000\n"),
            std::string::npos);
}

TEST_F(MeterTest, CountsTheLastPartOfAnAllocation) {
  for (const double work : {0.0, 4.0}) {
    give(DeviceSelector::By::uuid, "GPU-a");
    busy("GPU-a", 50);
    update();
    seconds_later(8);
    given.clear();
    busy("GPU-a", 50 + work);
    update();
    update();
    EXPECT_EQ(text(), "gpu_allocated_idle_seconds_total gpu=0 uuid=GPU-a kind=slurm_job workload=7 8\n");
    seconds_later(1);
  }
}

TEST_F(MeterTest, ADeviceThatIsNotReadIsNotIdle) {
  give(DeviceSelector::By::uuid, "GPU-a");
  update();
  EXPECT_EQ(text().find("idle"), std::string::npos);
  busy("GPU-a", 0);
  update();
  readings.busy.clear();
  seconds_later(600);
  update();
  seconds_later(1);
  busy("GPU-a", 0);
  update();
  EXPECT_NE(text().find("workload=7 0\n"), std::string::npos);
}

TEST_F(MeterTest, OnASharedGpuEachWorkloadsOwnTimeCounts) {
  give(DeviceSelector::By::uuid, "GPU-a", kJob);
  give(DeviceSelector::By::uuid, "GPU-a", kPod, AllocationSource::kubelet);
  for (int i = 0; i < 2; ++i) {
    busy("GPU-a", 30.0 * i);
    readings.listed["GPU-a"] = readings.busy[{"GPU-a", ""}].at;
    readings.present = {{"GPU-a", kJob}};
    readings.of_workloads[{"GPU-a", kJob}] = readings.busy[{"GPU-a", ""}];
    update();
    seconds_later(30);
  }
  const std::string page = text();
  EXPECT_EQ(page.substr(0, page.find("gpu_allocation_info")),
            "gpu_allocated_idle_seconds_total gpu=0 uuid=GPU-a kind=pod workload=uid-1 30\n"
            "gpu_allocated_idle_seconds_total gpu=0 uuid=GPU-a kind=slurm_job workload=7 0\n");
}

TEST_F(MeterTest, APartitionHasItsOwnBusyTime) {
  readings.partitions = {{{"GPU-b", "1g.18gb:7"}, "MIG-1", "7"}};
  give(DeviceSelector::By::uuid, "MIG-1");
  for (const double total : {1.0, 1.0}) {
    busy("GPU-b", total * 100, "1g.18gb:8");
    busy("GPU-b", total, "1g.18gb:7");
    update();
    seconds_later(20);
  }
  EXPECT_NE(text().find("partition=1g.18gb:7 kind=slurm_job workload=7 20\n"), std::string::npos);
}

TEST_F(MeterTest, TheCounterStaysForTenMinutesAfterTheEnd) {
  give(DeviceSelector::By::uuid, "GPU-a");
  busy("GPU-a", 0);
  update();
  given.clear();
  seconds_later(599);
  update();
  EXPECT_EQ(text(), "gpu_allocated_idle_seconds_total gpu=0 uuid=GPU-a kind=slurm_job workload=7 0\n");
  seconds_later(1);
  update();
  EXPECT_EQ(text(), "");
  EXPECT_TRUE(meter.is_empty());
}

TEST(ReadingsTest, ComeFromTheStore) {
  Store store;
  SeriesList list(store.attach());
  const Labels gpu = {{"gpu", "0"}, {"uuid", "GPU-a"}};
  const Labels job = gpu.with({{"kind", "slurm_job"}, {"workload", "7"}});
  list.add(catalog::busy_seconds, gpu, 12);
  list.add(catalog::partition_busy_seconds, gpu.with({{"partition", "1g:7"}}), 3);
  list.add(catalog::partition_info,
           gpu.with({{"partition", "1g:7"},
                     {"gpu_instance", "7"},
                     {"mig_uuid", "MIG-1"},
                     {"profile", "1g"},
                     {"profile_id", "19"},
                     {"placement", "4"}}),
           1);
  list.add(catalog::workload_share, job, 1);
  list.commit(std::chrono::seconds(5));

  const Readings readings = read(store);

  EXPECT_EQ(readings.busy.at({"GPU-a", ""}).seconds, 12);
  EXPECT_EQ(readings.busy.at({"GPU-a", "1g:7"}).at, std::chrono::seconds(5));
  EXPECT_EQ(readings.partitions.at(0).mig_uuid, "MIG-1");
  EXPECT_EQ(readings.partitions.at(0).profile, "1g");
  EXPECT_EQ(readings.partitions.at(0).profile_id, "19");
  EXPECT_EQ(readings.partitions.at(0).placement, "4");
  EXPECT_FALSE(readings.own({"GPU-a", kJob}));  // the driver does not report it
  EXPECT_EQ(readings.own({"GPU-a", kPod})->seconds, 0);
  EXPECT_FALSE(readings.own({"GPU-b", kPod}));
}

TEST_F(MeterTest, AMinorWithAGpuInstanceIsTheMigInstance) {
  readings.partitions = {{{"GPU-a", "1g.10gb:3"}, "MIG-3", "3"},
                         {{"GPU-b", "1g.10gb:3"}, "MIG-4", "3"},
                         {{"GPU-b", "2g.20gb:13"}, "MIG-5", "13"}};
  give(DeviceSelector::By::minor, "0/gi3", kPod, AllocationSource::kubelet);
  update();
  EXPECT_EQ(text(),
            "gpu_allocation_info gpu=1 uuid=GPU-b partition=1g.10gb:3 kind=pod workload=uid-1 source=kubelet "
            "1\n");
  given.clear();
  give(DeviceSelector::By::minor, "0/gi7", kPod, AllocationSource::kubelet);
  meter.update({}, devices, readings, std::chrono::seconds(2000));
  meter.update(given, devices, readings, std::chrono::seconds(3000));
  EXPECT_EQ(text(), "gpu_allocation_info gpu=1 uuid=GPU-b kind=pod workload=uid-1 source=kubelet 1\n");
}

/// The partition that a name of NVIDIA's DRA driver is given, on GPU-b, whose minor is 0.
class DraNameTest : public MeterTest {
 protected:
  std::string partition_of(const std::string& name) {
    meter = Meter({});
    given.clear();
    give(DeviceSelector::By::minor, "0/mig-" + name, kPod, AllocationSource::dra);
    update();
    const std::string labels = text();
    const auto from = labels.find("uuid=");
    return from == std::string::npos ? "nothing" : labels.substr(from, labels.find(" kind=") - from);
  }
};

TEST_F(DraNameTest, IsTheInstanceWithItsProfileAndPlace) {
  readings.partitions = {{{"GPU-a", "1g.10gb:1"}, "MIG-1", "1", "1g.10gb", "19", "0"},
                         {{"GPU-b", "1g.10gb:7"}, "MIG-2", "7", "1g.10gb", "19", "0"},
                         {{"GPU-b", "1g.10gb:9"}, "MIG-3", "9", "1g.10gb", "19", "4"},
                         {{"GPU-b", "1g.10gb+me:8"}, "MIG-4", "8", "1g.10gb+me", "20", "5"}};
  EXPECT_EQ(partition_of("1g10gb-19-0"), "uuid=GPU-b partition=1g.10gb:7");
  EXPECT_EQ(partition_of("1g10gb-19-4"), "uuid=GPU-b partition=1g.10gb:9");
  EXPECT_EQ(partition_of("1g10gb-me-20-5"), "uuid=GPU-b partition=1g.10gb+me:8");
  EXPECT_EQ(partition_of("1g10gb-me-20-6"), "uuid=GPU-b") << "no instance has the place: it is the GPU";
  EXPECT_EQ(partition_of("1g10gb-me"), "uuid=GPU-b");
  EXPECT_EQ(partition_of(""), "uuid=GPU-b");
}

TEST_F(DraNameTest, WithoutPlacesIsTheOnlyInstanceOfItsProfile) {
  readings.partitions = {{{"GPU-a", "2g.20gb:1"}, "MIG-1", "1", "2g.20gb"},
                         {{"GPU-b", "2g.20gb:5"}, "MIG-2", "5", "2g.20gb"},
                         {{"GPU-b", "2g.20gb:5"}, "MIG-3", "5", "2g.20gb"},
                         {{"GPU-b", "1g.10gb:7"}, "MIG-4", "7", "1g.10gb"},
                         {{"GPU-b", "1g.10gb:8"}, "MIG-5", "8", "1g.10gb"},
                         {{"GPU-b", "1g.10gb+me.all:9"}, "MIG-6", "9", "1g.10gb+me.all"}};
  EXPECT_EQ(partition_of("2g20gb-14-0"), "uuid=GPU-b partition=2g.20gb:5");
  EXPECT_EQ(partition_of("1c2g20gb-14-0"), "uuid=GPU-b partition=2g.20gb:5") << "a compute instance of it";
  EXPECT_EQ(partition_of("1g10gb-meall-21-6"), "uuid=GPU-b partition=1g.10gb+me.all:9");
  EXPECT_EQ(partition_of("1g10gb-19-0"), "uuid=GPU-b") << "two have the profile";
  EXPECT_EQ(partition_of("3g40gb-9-4"), "uuid=GPU-b");
}

TEST_F(MeterTest, TheIdleTimeGoesOnInAnotherMeter) {
  give(DeviceSelector::By::uuid, "GPU-a");
  for (int i = 0; i < 3; ++i) {
    busy("GPU-a", 0);
    update();
    seconds_later(10);
  }
  const std::string before = text();
  ASSERT_NE(before.find("gpu_allocated_idle_seconds_total"), std::string::npos) << before;
  const std::string saved = meter.save();
  meter = Meter({});
  ASSERT_TRUE(meter.load(saved));
  EXPECT_EQ(meter.save(), saved) << "before the allocation is seen";
  update();
  EXPECT_EQ(text(), before);
  EXPECT_FALSE(meter.load("idle\tGPU-a\t\tslurm_job\t7\t-1\n"));
  EXPECT_FALSE(meter.load("idle\tGPU-a\t\tno_kind\t7\t1\n"));
}

}  // namespace
}  // namespace gpumeter::allocation
