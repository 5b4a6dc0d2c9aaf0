#include "collectors/host/power.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>

#include "base/log.hpp"
#include "collectors/api/machine.hpp"
#include "collectors/attribution/workload_settings.hpp"
#include "collectors/jobs/model/run_list.hpp"
#include "exporter/health/report.hpp"
#include "exporter/store/store.hpp"
#include "tests/fakes/fake_clock.hpp"
#include "tests/fakes/tree.hpp"
#include "tests/fakes/walked.hpp"

// Numbers of real machines: powercap of an Intel with two packages (prometheus/procfs, testdata/fixtures), of
// an EPYC read twice (a pair 5.015 s apart; a pair 10 s apart with /proc/stat), Grace's powers on a node with
// four GH200 (FZJ-JSC/jpwr, README), Cray's texts on Frontier.

namespace gpumeter::host {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
namespace fs = std::filesystem;

constexpr const char* kEpycRange = "65532610987\n";

class PowerTest : public testing::Test {
 protected:
  /// The page after a turn, without the part's own figure.
  std::string turn(Nanoseconds later = seconds(5)) {
    if (!part_) open();
    clock_.advance(later);
    part_->turn(clock_.monotonic());
    return walked(store_);
  }
  void open() { part_ = kPower.open({"power", store_, machine_, clock_, log_, paths_, {}, &settings_}); }
  /// Unix time at which this counter began; -1: it is not on the page.
  double since(const std::string& family) const {
    double found = -1;
    store_.walk([&](const Family& each) {
      each.for_each([&](const Series& series) {
        if (each.descriptor().name == family) found = series.since();
      });
    });
    return found;
  }
  std::string section() const { return dynamic_cast<const Keeps&>(*part_).save(); }
  /// The part of the next process, which has the section of this one.
  void restart(bool is_of_this_boot = true) {
    const std::string kept = section();
    part_.reset();
    open();
    ASSERT_TRUE(dynamic_cast<Keeps&>(*part_).resume(kept, is_of_this_boot));
    if (!is_of_this_boot) return;
    EXPECT_EQ(section(), kept);  // also if it ends before its first turn
  }
  void zone(const std::string& zone, const char* name, const char* energy, const char* range = kEpycRange) {
    const std::string folder = "class/powercap/intel-rapl" + zone;
    sys_.write(folder + "/name", std::string(name) + "\n");
    sys_.write(folder + "/energy_uj", std::string(energy) + "\n");
    sys_.write(folder + "/max_energy_range_uj", range);
  }
  void meter(int number, const char* info, const char* microwatts, const char* device = "/device") {
    const std::string folder = "class/hwmon/hwmon" + std::to_string(number);
    sys_.write(folder + "/name", "power_meter\n");
    sys_.write(folder + device + "/power1_oem_info", std::string(info) + "\n");
    sys_.write(folder + device + "/power1_average", std::string(microwatts) + "\n");
  }
  void sensor(const std::string& folder, const char* chip, const char* bus, const std::string& device) {
    sys_.write(folder + "/name", std::string(chip) + "\n");
    sys_.write("devices/" + device + "/subsystem", std::string("-> ../../bus/") + bus);
    sys_.write(folder + "/device", "-> ../../../devices/" + device);
  }

  Tree sys_{{}};
  Tree proc_{{}};
  Paths paths_{sys_.path(), proc_.path()};
  PowerSettings settings_;
  Store store_;
  Machine machine_;
  FakeClock clock_;
  Log log_{clock_, {}};
  std::shared_ptr<Part> part_;
};

TEST_F(PowerTest, AMachineWithoutSensorsHasNothing) { EXPECT_EQ(turn(), ""); }

TEST_F(PowerTest, TheFirstReadingOfACounterIsItsStart) {
  zone(":0", "package-0", "45514845753");
  EXPECT_EQ(turn(),
            "gpumeter_powercap_readable{} 1\n"
            "machine_energy_joules_total{source=\"powercap\",domain=\"cpu\",socket=\"0\"} 0\n");
  zone(":0", "package-0", "46107552971");
  EXPECT_EQ(turn(Nanoseconds(5'015'051'212)),
            "gpumeter_powercap_readable{} 1\n"
            "machine_energy_joules_total{source=\"powercap\",domain=\"cpu\",socket=\"0\"} 592.707218\n"
            "machine_power_watts{source=\"powercap\",domain=\"cpu\",socket=\"0\"} 118.185676\n");
}

TEST_F(PowerTest, TwoSocketsWithTheirMemoryAndTheRailsThatArePartsOfThem) {
  const auto write = [this](const char* package, const char* core, const char* dram) {
    zone(":0", "package-0", package, "262143328850\n");
    zone(":0:0", "core", core, "262143328850\n");
    zone(":0:1", "dram", dram, "65712999613\n");
    zone(":a", "package-10-die-1", package, "262143328850\n");
    zone(":b", "psys", package, "262143328850\n");
    zone("-mmio:0", "package-0", package, "262143328850\n");
  };
  write("240422366267", "118821284256", "5000000");
  turn();
  write("240922366267", "118921284256", "30000000");
  EXPECT_EQ(turn(),
            "gpumeter_powercap_readable{} 1\n"
            "machine_energy_joules_total{source=\"powercap\",domain=\"cpu\",socket=\"10-die-1\"} 500\n"
            "machine_energy_joules_total{source=\"powercap\",domain=\"cpu\",socket=\"0\"} 500\n"
            "machine_energy_joules_total{source=\"powercap\",domain=\"memory\",socket=\"0\"} 25\n"
            "machine_power_rail_watts{source=\"powercap\",rail=\"psys\"} 100\n"
            "machine_power_rail_watts{source=\"powercap\",rail=\"core\",socket=\"0\"} 20\n"
            "machine_power_watts{source=\"powercap\",domain=\"cpu\",socket=\"10-die-1\"} 100\n"
            "machine_power_watts{source=\"powercap\",domain=\"cpu\",socket=\"0\"} 100\n"
            "machine_power_watts{source=\"powercap\",domain=\"memory\",socket=\"0\"} 5\n"
            "machine_rail_energy_joules_total{source=\"powercap\",rail=\"psys\"} 500\n"
            "machine_rail_energy_joules_total{source=\"powercap\",rail=\"core\",socket=\"0\"} 100\n");
}

/// The joules of package 0 after these numbers of its counter, 5 s apart.
class CounterTest : public PowerTest {
 protected:
  std::string joules(std::initializer_list<const char*> numbers, Nanoseconds apart = seconds(5)) {
    constexpr std::string_view kName =
        "machine_energy_joules_total{source=\"powercap\",domain=\"cpu\",socket=\"0\"} ";
    std::string page;
    for (const char* const number : numbers) {
      zone(":0", "package-0", number);
      page = turn(apart);
    }
    const std::size_t at = page.find(kName) + kName.size();
    return page.substr(at, page.find('\n', at) - at);
  }
};

TEST_F(CounterTest, GoesOnOverAWrap) { EXPECT_EQ(joules({"65532609987", "4000"}), "0.005"); }

TEST_F(CounterTest, CountsFromTheResetOn) {
  EXPECT_EQ(joules({"38419855704", "39826460727", "700000", "1700000"}), "1408.305023");
}

TEST_F(CounterTest, DoesNotCountATimeInWhichItMayHaveWrappedUnseen) {
  EXPECT_EQ(joules({"38419855704", "39826460727"}, seconds(15)), "1406.605023");
  EXPECT_EQ(joules({"39926460727", "40926460727"}, seconds(16)), "1406.605023");
}

TEST_F(CounterTest, ATextThatIsNoNumberIsAbsentAndTheCounterGoesOn) {
  EXPECT_EQ(joules({"1000000", "3000000"}), "2");
  zone(":0", "package-0", "");
  EXPECT_EQ(turn(), "gpumeter_powercap_readable{} 1\n");
  EXPECT_EQ(joules({"4000000"}), "3");
}

TEST_F(CounterTest, ContinuesOverARestartWithTheTimeBetween) {
  joules({"38419855704", "39826460727"});
  restart();
  EXPECT_EQ(joules({"40826460727"}), "2406.605023");
  restart();
  EXPECT_EQ(joules({"41826460727"}, seconds(16)), "2406.605023");
}

TEST_F(CounterTest, ContinuesAfterABootOfTheMachine) {
  joules({"38419855704", "39826460727"});
  restart(false);
  EXPECT_EQ(joules({"39926460727", "40926460727"}), "2406.605023");
}

TEST_F(CounterTest, AMeterThatComesLateAfterARestartContinues) {
  joules({"1000000", "3000000"});
  sys_.remove("class/powercap");
  restart();
  turn();
  EXPECT_EQ(joules({"4000000"}), "3");
}

TEST_F(CounterTest, KeepsItsStartOverARestartAndABoot) {
  joules({"1000000"});
  const double start = to_seconds(clock_.realtime());
  EXPECT_EQ(since("machine_energy_joules_total"), start);
  joules({"3000000"});
  restart();
  joules({"4000000"});
  restart(false);
  joules({"1000000"});
  EXPECT_EQ(since("machine_energy_joules_total"), start);
  const std::string kept = section();
  const std::string of_earlier_version = kept.substr(0, kept.rfind('\t')) + "\n";
  open();
  ASSERT_TRUE(dynamic_cast<Keeps&>(*part_).resume(of_earlier_version, true));
  EXPECT_EQ(joules({"1000000"}), "3");
  EXPECT_EQ(since("machine_energy_joules_total"), 0) << "unknown";
}

TEST_F(CounterTest, ADamagedSectionLeavesThePartAsItWas) {
  joules({"1000000", "3000000"});
  for (const std::string damaged : {"meter\n", "meter\tsource=powercap \t1\t2\t-3\n", "other\n"}) {
    EXPECT_FALSE(dynamic_cast<Keeps&>(*part_).resume(damaged, true)) << damaged;
  }
  EXPECT_EQ(joules({"4000000"}), "3");
}

TEST_F(PowerTest, GraceHasItsSocketsAsPartsAndTheOthersAsRails) {
  meter(1, "Module Power Socket 3", "197148000");
  meter(2, "Grace Power Socket 3", "36714000");
  meter(3, "CPU Power Socket 3", "35134000");
  meter(4, "SysIO Power Socket 3", "171000", "");  // as Linux 6.14 has it
  meter(5, "Grace Power Socket 2", "4294967295000");
  meter(6, "CPU Power Socket 2", "0");
  meter(7, "Total CPU Energy In uJ socket 0", "123456");
  turn();
  EXPECT_EQ(turn(),
            "machine_energy_joules_total{source=\"acpi\",domain=\"socket\",socket=\"3\"} 183.57\n"
            "machine_power_rail_watts{source=\"acpi\",rail=\"module\",socket=\"3\"} 197.148\n"
            "machine_power_rail_watts{source=\"acpi\",rail=\"cpu\",socket=\"3\"} 35.134\n"
            "machine_power_rail_watts{source=\"acpi\",rail=\"soc\",socket=\"3\"} 0.171\n"
            "machine_power_watts{source=\"acpi\",domain=\"socket\",socket=\"3\"} 36.714\n"
            "machine_rail_energy_joules_total{source=\"acpi\",rail=\"module\",socket=\"3\"} 985.74\n"
            "machine_rail_energy_joules_total{source=\"acpi\",rail=\"cpu\",socket=\"3\"} 175.67\n"
            "machine_rail_energy_joules_total{source=\"acpi\",rail=\"soc\",socket=\"3\"} 0.855\n");
}

TEST_F(PowerTest, AMeterWithoutATextIsARail) {
  meter(1, "", "412000000");
  EXPECT_EQ(turn(),
            "machine_power_rail_watts{source=\"acpi\",rail=\"power1\"} 412\n"
            "machine_rail_energy_joules_total{source=\"acpi\",rail=\"power1\"} 0\n");
}

TEST_F(PowerTest, OneSourceHasThePartsSoThatTheirSumCountsNothingTwice) {
  for (const char* const socket : {"0", "1"}) {
    const std::string folder = std::string("class/hwmon/hwmon") + socket;
    sensor(folder, "amd_hsmp_hwmon", "platform", std::string("amd_hsmp.") + socket);
    sys_.write(folder + "/power1_input", "45000000\n");
    sys_.write(folder + "/power1_cap", "400000000\n");
  }
  EXPECT_EQ(turn(),
            "machine_energy_joules_total{source=\"hsmp\",domain=\"cpu\",socket=\"0\"} 0\n"
            "machine_energy_joules_total{source=\"hsmp\",domain=\"cpu\",socket=\"1\"} 0\n"
            "machine_power_watts{source=\"hsmp\",domain=\"cpu\",socket=\"0\"} 45\n"
            "machine_power_watts{source=\"hsmp\",domain=\"cpu\",socket=\"1\"} 45\n");
  zone(":0", "package-0", "45514845753");
  EXPECT_EQ(turn(),
            "gpumeter_powercap_readable{} 1\n"
            "machine_energy_joules_total{source=\"powercap\",domain=\"cpu\",socket=\"0\"} 0\n");
}

TEST_F(PowerTest, CraysCountersOfJoules) {
  const std::string folder = "cray/pm_counters/";
  sys_.write(folder + "cpu_energy", "210046217 J 1700061210920464 us\n");
  sys_.write(folder + "memory_energy", "81147367 J 1700061210920464 us\n");
  sys_.write(folder + "accel0_energy", "90147367 J 1700061210920464 us\n");
  turn();
  sys_.write(folder + "memory_energy", "81147722 J 1700061215920464 us\n");
  EXPECT_EQ(turn(),
            "machine_energy_joules_total{source=\"cray\",domain=\"cpu\"} 0\n"
            "machine_energy_joules_total{source=\"cray\",domain=\"memory\"} 355\n"
            "machine_power_rail_watts{source=\"cray\",rail=\"accel0\"} 0\n"
            "machine_power_watts{source=\"cray\",domain=\"cpu\"} 0\n"
            "machine_power_watts{source=\"cray\",domain=\"memory\"} 71\n"
            "machine_rail_energy_joules_total{source=\"cray\",rail=\"accel0\"} 0\n");
}

TEST_F(PowerTest, APowerSupplyThatComesAndGoes) {
  const std::string folder = "class/hwmon/hwmon4";
  EXPECT_EQ(turn(), "");
  sensor(folder, "dps920ab", "i2c", "3-0058");
  sys_.write(folder + "/power1_label", "pin\n");
  sys_.write(folder + "/power1_input", "300000000\n");
  sys_.write(folder + "/power2_label", "pout1\n");
  sys_.write(folder + "/power2_input", "280000000\n");
  sys_.write(folder + "/power2_input_highest", "290000000\n");
  turn();
  const std::string page =
      "machine_power_rail_watts{source=\"dps920ab\",rail=\"pin\",sensor=\"3-0058\"} 300\n"
      "machine_power_rail_watts{source=\"dps920ab\",rail=\"pout1\",sensor=\"3-0058\"} 280\n"
      "machine_rail_energy_joules_total{source=\"dps920ab\",rail=\"pin\",sensor=\"3-0058\"} 1500\n"
      "machine_rail_energy_joules_total{source=\"dps920ab\",rail=\"pout1\",sensor=\"3-0058\"} 1400\n";
  EXPECT_EQ(turn(), page);
  fs::rename(sys_ / "class/hwmon", sys_ / "class/away");
  EXPECT_EQ(turn(), "");
}

TEST_F(PowerTest, SensorsOfPciDevicesAreTheirCollectors) {
  sensor("class/hwmon/hwmon2", "amdgpu", "pci", "0000:0c:00.0");
  sys_.write("class/hwmon/hwmon2/power1_average", "120000000\n");
  EXPECT_EQ(turn(), "");
}

TEST_F(PowerTest, ARefusedPermissionIsSaidOnceAndThenItsEnd) {
  if (geteuid() != 0) GTEST_SKIP() << "requires root";
  zone(":0", "package-0", "45514845753");
  const fs::path energy = sys_ / "class/powercap/intel-rapl:0/energy_uj";
  fs::permissions(sys_.path(), fs::perms(0755));
  fs::permissions(energy, fs::perms(0400));
  constexpr uid_t kService = 54320;
  testing::internal::CaptureStderr();
  const auto turn_as_service = [&] {
    EXPECT_EQ(seteuid(kService), 0);
    const std::string page = turn();
    EXPECT_EQ(seteuid(0), 0);
    return page;
  };
  for (int i = 0; i < 3; ++i) EXPECT_EQ(turn_as_service(), "gpumeter_powercap_readable{} 0\n");
  fs::permissions(energy, fs::perms(0444));
  for (int i = 0; i < 2; ++i) {
    EXPECT_NE(turn_as_service().find("gpumeter_powercap_readable{} 1\n"), std::string::npos);
  }
  EXPECT_TRUE(log_.flush(seconds(5)));
  std::string lines = testing::internal::GetCapturedStderr();
  for (std::size_t at = 0; (at = lines.find("ts=", at)) != std::string::npos;) {
    lines.erase(at, lines.find(' ', at) + 1 - at);
  }
  EXPECT_EQ(lines,
            "level=info msg=\"the energy of the processors is not read: the kernel permits it to root only\" "
            "permitted_by=gpumeter-powercap.service\n"
            "level=info msg=\"the energy of the processors is read\"\n");
}

TEST_F(PowerTest, TheEnergyOfAWorkloadIsItsPartOfTheCpuTime) {
  const auto write = [this](const char* energy, const char* stat, const char* cpu) {
    zone(":0", "package-0", energy);
    proc_.write("stat", std::string(stat) + "\ncpu0 7718324 1052 1398966 282654939\n");
    sys_.write("fs/cgroup/vm.scope/cpu.stat", std::string("usage_usec ") + cpu + "\n");
  };
  const auto book = std::make_shared<workloads::WorkloadBook>();
  auto use = std::make_shared<workloads::DeviceUse>();
  use->uuid = "GPU-0";
  book->publish(use);  // without a device the book has no workloads
  const workloads::WorkloadId vm{cgroup::Kind::systemd_unit, "vm.scope"};
  cgroup::Attribution process;
  process.group = "/vm.scope";
  book->open(vm);
  book->note(vm, process, std::nullopt);
  WorkloadSettings workloads;
  workloads.book = book;
  machine_.workloads = std::make_shared<const WorkloadSettings>(workloads);
  settings_.workload_energy = true;
  write("38419855704", "cpu  728198716 39636 158011089 37269636514 62997159 0 4781646 0 688783983 927",
        "62338613");
  turn(seconds(10));
  const double start = to_seconds(clock_.realtime());
  write("39826460727", "cpu  728214069 39636 158013305 37269744359 62999128 0 4781732 0 688798719 927",
        "69571715");
  // 1406.605023 J * 7.233102 s / 1274.69 s: the machine has 128 CPUs.
  EXPECT_NE(turn(seconds(10))
                .find("gpu_workload_host_energy_joules_total{kind=\"systemd_unit\",workload=\"vm.scope\"} "
                      "7.981641\n"),
            std::string::npos)
      << walked(store_);
  restart();
  // Its CPU time until the first turn is not known.
  EXPECT_NE(turn().find("workload=\"vm.scope\"} 7.981641\n"), std::string::npos) << walked(store_);
  EXPECT_EQ(since("gpu_workload_host_energy_joules_total"), start);
  restart();
  book->close(vm);
  turn(seconds(10));
  turn(seconds(61));
  EXPECT_EQ(section().find("workload"), std::string::npos) << section();
}

}  // namespace
}  // namespace gpumeter::host
