#include "collectors/attribution/device_meter.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tests/fakes/fake_procfs.hpp"

namespace gpumeter::workloads {
namespace {

using namespace std::chrono_literals;

WorkloadId unit(const std::string& name) { return {cgroup::Kind::systemd_unit, name + ".service"}; }
std::string group(const std::string& name) { return "/system.slice/" + name + ".service"; }

DeviceProcess process(int pid, std::optional<double> busy = {}, std::optional<double> memory = {}) {
  return {pid, memory, busy};
}

class DeviceMeterTest : public testing::Test {
 protected:
  using List = std::vector<DeviceProcess>;

  void look(Nanoseconds now, const List& listed) { meter_.update(now, listed); }
  const Workload& at(const WorkloadId& id) const { return meter_.workloads().at(id); }
  double energy(const WorkloadId& id) const { return at(id).energy_joules; }
  double sum(double Workload::*member) const {
    double sum = 0;
    for (const auto& [id, workload] : meter_.workloads()) sum += workload.*member;
    return sum;
  }
  const ProcessUse& use(int pid, std::uint64_t start = 100) const {
    return meter_.processes().at({pid, start}).use;
  }

  FakeProcfs procfs_;
  static std::shared_ptr<WorkloadBook> book_of_a_device() {
    auto book = std::make_shared<WorkloadBook>();
    book->publish(std::make_shared<DeviceUse>());
    return book;
  }

  std::shared_ptr<WorkloadBook> book_ = book_of_a_device();
  DeviceMeter meter_{procfs_.path(), true, book_};
};

TEST_F(DeviceMeterTest, EnergyIsNobodysWhereNobodyIs) {
  meter_.add_energy(1000);
  EXPECT_FALSE(meter_.is_known());
  look(1s, {});
  EXPECT_TRUE(meter_.is_known());
  meter_.add_energy(1500);
  EXPECT_EQ(energy(unattributed()), 1500);
  EXPECT_EQ(at(unattributed()).share, 1);
  EXPECT_EQ(meter_.workloads().size(), 1U);
}

TEST_F(DeviceMeterTest, AVirtualMachineIsAWorkloadWithItsOwnShare) {
  const WorkloadId first{cgroup::Kind::vm, "vm-a"};
  const WorkloadId second{cgroup::Kind::vm, "vm-b"};
  look(1s, {{0, 300, 0, "vm-a"}, {0, 100, 0, "vm-b"}, {0, 50, 0, "vm-a"}});
  meter_.add_energy(0);
  look(11s, {{0, 300, 4, "vm-a"}, {0, 100, 2, "vm-b"}, {0, 50, 2, "vm-a"}});
  meter_.add_energy(800);
  EXPECT_EQ(at(first).memory_bytes, 350);
  EXPECT_EQ(at(first).busy_seconds, 6);
  EXPECT_EQ(energy(first), 600);
  EXPECT_EQ(energy(second), 200);
  EXPECT_EQ(energy(unattributed()), 0);
  EXPECT_DOUBLE_EQ(at(first).share, 0.75);
  EXPECT_TRUE(meter_.processes().empty());
  EXPECT_EQ(book_->workloads().size(), 3U);
}

TEST_F(DeviceMeterTest, EnergyGoesByTheBusyTimeOfTheLastLook) {
  procfs_.add(7, group("a"), {.uid = 1000});
  procfs_.add(8, group("b"));
  meter_.add_energy(1000);
  look(1s, {process(7, 0.6, 1.0), process(8, 0.2, 99.0)});
  EXPECT_EQ(energy(unattributed()), 1000) << "what was before is nobody's";
  meter_.add_energy(1100);
  EXPECT_DOUBLE_EQ(energy(unit("a")), 75);
  EXPECT_DOUBLE_EQ(energy(unit("b")), 25);
  EXPECT_DOUBLE_EQ(use(7).energy_joules, 75);
  EXPECT_EQ(use(7).uid, 1000U);
  EXPECT_EQ(use(7).group, "/system.slice/a.service");
  EXPECT_EQ(meter_.processes().at({7, 100}).name, "train");
  look(2s, {process(7, 0.0, 1.0), process(8, 0.0, 99.0)});
  meter_.add_energy(1200);
  EXPECT_DOUBLE_EQ(energy(unit("a")), 76) << "nobody was busy: by memory";
  EXPECT_EQ(energy(unattributed()), 1000);
  EXPECT_EQ(at(unit("b")).memory_bytes, 99);
  EXPECT_EQ(at(unit("b")).busy_seconds, 0.2);
}

TEST_F(DeviceMeterTest, WhatTheDriverDoesNotTellIsAbsent) {
  procfs_.add(7, group("a"));
  procfs_.add(8, group("a"));
  procfs_.add(9, group("b"));
  look(1s, {process(7), process(8, NAN, -1.0), process(9, INFINITY)});
  EXPECT_EQ(at(unit("a")).busy_seconds, std::nullopt);
  EXPECT_EQ(at(unit("a")).memory_bytes, std::nullopt);
  EXPECT_EQ(use(8).busy_seconds, std::nullopt);
  EXPECT_DOUBLE_EQ(at(unit("a")).share, 2.0 / 3) << "equal parts";
  EXPECT_FALSE(book_->workloads().back().facts.is_measured);
  look(2s, {process(7, 0.0)});
  EXPECT_EQ(at(unit("a")).busy_seconds, 0);
  EXPECT_EQ(at(unit("b")).memory_bytes, std::nullopt);
}

TEST_F(DeviceMeterTest, ACounterThatFallsBackAddsNothing) {
  procfs_.add(7, group("a"));
  meter_.add_energy(1000);
  look(1s, {process(7, 0.5)});
  meter_.add_energy(1100);
  meter_.add_energy(40);
  meter_.add_energy(NAN);
  EXPECT_EQ(energy(unit("a")), 100);
  meter_.add_energy(50);
  EXPECT_EQ(energy(unit("a")), 110);
  EXPECT_EQ(energy(unattributed()), 1000);
}

TEST_F(DeviceMeterTest, TheSumIsTheDevicesOverAHundredThousandSteps) {
  std::mt19937 random(1);  // NOLINT(bugprone-random-generator-seed): the same steps each time
  const auto upto = [&](double most) { return std::uniform_real_distribution(0.0, most)(random); };
  const auto chance = [&](double of) { return upto(1) < of; };
  for (int pid = 10; pid < 30; ++pid) procfs_.add(pid, group("u" + std::to_string(pid % 5)));
  double total = 5e6;
  for (int step = 0; step < 100'000; ++step) {
    meter_.add_energy(total, step * 10ms);
    if (chance(0.001)) meter_.interrupt();
    if (chance(0.01)) {
      List listed;
      for (int pid = 10; pid < 30; ++pid) {
        if (chance(0.3)) listed.push_back(process(pid, chance(0.5) ? std::optional(upto(2)) : std::nullopt));
      }
      const bool is_divided = chance(0.3);
      for (DeviceProcess& one : listed) {
        if (is_divided) one.held_ratio = upto(0.1), one.device_seconds = chance(0.5) ? 0 : upto(1);
      }
      if (is_divided) listed.push_back({.device_seconds = upto(1), .held_ratio = upto(1)});
      look(step * 10ms, listed);
      ASSERT_NEAR(sum(&Workload::share), 1, 1e-12);
    }
    ASSERT_NEAR(sum(&Workload::energy_joules) / total, 1, 1e-12) << step;
    total += upto(1000);
  }
  double of_processes = energy(unattributed());
  for (const auto& [id, process] : meter_.processes()) of_processes += process.use.energy_joules;
  EXPECT_GT(of_processes, total / 2);
}

TEST_F(DeviceMeterTest, IdleEnergyGoesToTheHoldersAndTheRestByActivity) {
  procfs_.add(7, group("a"));
  procfs_.add(8, group("b"));
  meter_.add_energy(0, 1s);
  look(1s, {process(7, 0.0, 300.0), process(8, 0.0, 100.0)});
  meter_.add_energy(1000, 11s);
  EXPECT_EQ(energy(unit("a")), 750);
  EXPECT_EQ(at(unit("a")).idle_joules, 0) << "not known yet";
  look(11s, {process(7, 0.0, 300.0), process(8, 0.0, 100.0)});
  EXPECT_EQ(meter_.idle_watts(), 100);
  meter_.add_energy(2000, 21s);
  EXPECT_EQ(at(unit("a")).idle_joules, 750);
  look(21s, {process(7, 1.0, 300.0), process(8, 9.0, 100.0)});
  EXPECT_EQ(meter_.basis(), Basis::busy);
  meter_.add_energy(8000, 31s);
  EXPECT_DOUBLE_EQ(energy(unit("a")), 750 + 750 + 750 + 500);
  EXPECT_DOUBLE_EQ(energy(unit("b")), 250 + 250 + 250 + 4500);
  EXPECT_DOUBLE_EQ(at(unit("b")).idle_joules, 500);
  look(31s, {});
  meter_.add_energy(9000, 41s);
  EXPECT_DOUBLE_EQ(energy(unattributed()), 1000);
}

TEST_F(DeviceMeterTest, AWindowInWhichTheDeviceWasBusyIsNotIdle) {
  meter_.add_energy(0, 1s);
  meter_.update(1s, {}, {}, 50);
  meter_.add_energy(5000, 11s);
  meter_.update(11s, {}, {}, 59);
  EXPECT_EQ(meter_.idle_watts(), std::nullopt) << "a process came and left";
  meter_.add_energy(6000, 21s);
  meter_.update(21s, {}, {}, 59);
  EXPECT_EQ(meter_.idle_watts(), 100);
}

TEST_F(DeviceMeterTest, AGapIsNoIdleWindow) {
  procfs_.add(7, group("a"));
  meter_.add_energy(0, 1s);
  look(1s, {process(7, 0.0)});
  meter_.interrupt();
  meter_.add_energy(500'000, 1000s);
  look(1000s, {process(7, 0.0)});
  EXPECT_EQ(meter_.idle_watts(), std::nullopt);
  EXPECT_EQ(energy(unattributed()), 500'000);
}

TEST_F(DeviceMeterTest, TheSlicesOfADividedDevicePayForWhatTheyHoldAndDo) {
  procfs_.add(7, group("a"));
  procfs_.add(8, group("b"));
  const auto list = [](double a, double b, double nobody) {
    return List{{.pid = 7, .memory_bytes = 9e9, .device_seconds = a, .held_ratio = 0.5},
                {.pid = 8, .memory_bytes = 1e9, .device_seconds = b, .held_ratio = 0.125},
                {.device_seconds = nobody, .held_ratio = 0.375}};
  };
  meter_.add_energy(0, 1s);
  look(1s, list(0, 0, 0));
  meter_.add_energy(800, 11s);
  look(11s, list(0, 0, 0));
  look(11s, list(2, 6, 2));
  EXPECT_EQ(meter_.basis(), Basis::activity);
  EXPECT_DOUBLE_EQ(at(unit("b")).share, 0.6);
  EXPECT_EQ(at(unattributed()).processes, 0U);
  meter_.add_energy(2600, 21s);
  EXPECT_DOUBLE_EQ(energy(unit("a")), 400 + 400 + 200);
  EXPECT_DOUBLE_EQ(energy(unit("b")), 100 + 100 + 600);
  EXPECT_DOUBLE_EQ(energy(unattributed()), 300 + 300 + 200) << "slices that nobody has, and an unlisted one";
}

/// Two processes on a device that takes 100 W idle and 600 W busy, whose driver samples one process at a
/// time, five times a second. The truth: idle energy by memory, the rest by busy time.
TEST_F(DeviceMeterTest, AControlledSplitIsWithinFivePercentAndItsIntervalHolds) {
  procfs_.add(7, group("a"));
  procfs_.add(8, group("b"));
  constexpr double kIdle = 100, kBusy = 500, kA = 0.5, kB = 0.3, kSamples = 50;
  constexpr int kWindows = 60;
  std::mt19937 random(31);
  int held = 0;
  for (int run = 0; run < 100; ++run) {
    DeviceMeter meter(procfs_.path(), false, book_);
    Nanoseconds now = 1s;
    double total = 1e6;
    const auto turn = [&](double watts, double a, double b) {
      meter.add_energy(total, now);
      meter.update(now, List{process(7, a, 300.0), process(8, b, 100.0)});
      now += 10s;
      total += watts * 10;
    };
    turn(kIdle, 0, 0);
    turn(kIdle, 0, 0);
    for (int window = 0; window < kWindows; ++window) {
      int a = 0, b = 0;
      for (int i = 0; i < static_cast<int>(kSamples); ++i) {
        const double at = std::uniform_real_distribution(0.0, 1.0)(random);
        if (at < kA) ++a;
        if (at >= kA && at < kA + kB) ++b;
      }
      turn(kIdle + kBusy * (kA + kB), a / kSamples * 10, b / kSamples * 10);
    }
    meter.add_energy(total, now);
    const double of_a = meter.workloads().at(unit("a")).energy_joules;
    const double of_b = meter.workloads().at(unit("b")).energy_joules;
    const double rest = meter.workloads().at(unattributed()).energy_joules;
    ASSERT_NEAR(of_a + of_b + rest, total, 1e-6);
    const double active = kBusy * (kA + kB) * 10 * kWindows;
    const double truth = 0.75 * kIdle * 10 * (kWindows + 2) + active * kA / (kA + kB);
    ASSERT_NEAR(of_a / truth, 1, 0.05);
    // docs/workloads.md: twice sqrt(p (1 - p) / n), n busy samples, of the active energy.
    const double p = kA / (kA + kB), n = kSamples * (kA + kB) * kWindows;
    if (std::abs(of_a - truth) <= 2 * std::sqrt(p * (1 - p) / n) * active) ++held;
  }
  EXPECT_GE(held, 95);
}

TEST_F(DeviceMeterTest, AShareIsOfTheLastMinuteAlsoOfThoseThatLeft) {
  procfs_.add(7, group("a"));
  procfs_.add(8, group("b"));
  look(100s, {process(7, 3.0), process(8, 0.0)});
  look(110s, {process(8, 1.0, 5.0)});
  EXPECT_EQ(at(unit("a")).share, 0.75);
  EXPECT_EQ(at(unit("b")).share, 0.25);
  EXPECT_EQ(at(unit("a")).processes, 0U);
  meter_.add_energy(0);
  meter_.add_energy(8);
  EXPECT_EQ(energy(unit("a")), 0) << "its energy ended with it";
  look(160s, {process(8, 0.0, 5.0)});
  EXPECT_EQ(at(unit("a")).share, 0);
  EXPECT_EQ(at(unit("b")).share, 1);
  look(170s, {process(8, 0.0, 5.0)});
  EXPECT_EQ(at(unit("b")).share, 1) << "by memory";
  look(171s, {});
  EXPECT_EQ(at(unit("b")).share, 0);
  EXPECT_EQ(at(unattributed()).share, 1);
}

TEST_F(DeviceMeterTest, ProcessesThatNoGroupTellsOfAreUnattributed) {
  procfs_.add(7, "/");
  look(1s, {process(7, 0.5, 100.0), process(4711, 0.5)});  // 4711 does not exist
  EXPECT_EQ(meter_.workloads().size(), 1U);
  EXPECT_EQ(at(unattributed()).processes, 2U);
  EXPECT_EQ(at(unattributed()).share, 1);
  EXPECT_EQ(at(unattributed()).busy_seconds, 1);
  EXPECT_EQ(at(unattributed()).memory_bytes, 100);
}

TEST_F(DeviceMeterTest, OneThatEndedDuringTheLookIsWhoItWas) {
  procfs_.add(7, group("a"));
  look(1s, {process(7, 0.25)});
  procfs_.end(7);
  look(2s, {process(7, 0.5)});
  EXPECT_EQ(at(unit("a")).busy_seconds, 0.75);
  EXPECT_EQ(use(7).busy_seconds, 0.75);
  look(3s, {});
  look(4s, {process(7, 1.0)});
  EXPECT_EQ(at(unit("a")).busy_seconds, 0.75) << "it was not there at the last look";
  EXPECT_EQ(at(unattributed()).busy_seconds, 1);
}

TEST_F(DeviceMeterTest, APidThatIsGivenAgainIsAnother) {
  procfs_.add(7, group("a"), {.start = 100, .uid = 1});
  look(1s, {process(7, 0.25)});
  procfs_.add(7, group("b"), {.start = 200, .uid = 2});
  look(2s, {process(7, 0.5)});
  EXPECT_EQ(use(7, 100).busy_seconds, 0.25);
  EXPECT_FALSE(use(7, 100).present);
  EXPECT_EQ(use(7, 200).busy_seconds, 0.5);
  EXPECT_TRUE(use(7, 200).present);
  EXPECT_EQ(use(7, 200).uid, 2U);
  EXPECT_EQ(meter_.uses().size(), 2U);
}

TEST_F(DeviceMeterTest, AProcessThatIsMovedTakesItsNewWorkload) {
  procfs_.add(7, "/system.slice/slurmstepd.scope");
  meter_.add_energy(0);
  look(1s, {process(7, 0.5)});
  meter_.add_energy(10);
  procfs_.add(7, "/system.slice/slurmstepd.scope/job_55/step_0/user/task_0");
  look(2s, {process(7, 0.5)});
  meter_.add_energy(14);
  const WorkloadId job{cgroup::Kind::slurm_job, "55"};
  EXPECT_EQ(energy(job), 4);
  EXPECT_EQ(energy({cgroup::Kind::systemd_unit, "slurmstepd.scope"}), 10);
  EXPECT_EQ(use(7).energy_joules, 14);
  EXPECT_EQ(use(7).busy_seconds, 1);
  EXPECT_EQ(use(7).group, "/system.slice/slurmstepd.scope/job_55/step_0/user/task_0");
}

TEST_F(DeviceMeterTest, TheSixtyFifthWorkloadIsOneOfTheOthers) {
  List listed;
  for (int pid = 100; pid < 170; ++pid) {
    procfs_.add(pid, group(std::to_string(pid)));
    listed.push_back(process(pid, 1.0, 10.0));
  }
  look(1s, listed);
  EXPECT_EQ(meter_.workloads().size(), 66U);
  EXPECT_EQ(at(all_others()).processes, 6U);
  EXPECT_EQ(at(all_others()).busy_seconds, 6);
  EXPECT_NEAR(sum(&Workload::share), 1, 1e-12);
  EXPECT_EQ(use(169).busy_seconds, 1) << "a process is told apart all the same";
  look(2s, {listed.back()});
  look(1s + 10min, {listed.back()});
  look(2s + 10min, {listed.back()});
  EXPECT_TRUE(meter_.workloads().contains(unit("169"))) << "there is room again";
  EXPECT_EQ(at(all_others()).processes, 0U);
}

TEST_F(DeviceMeterTest, TheBookBoundsAllDevicesTogether) {
  const auto book = std::make_shared<WorkloadBook>(2);
  DeviceMeter first(procfs_.path(), false, book);
  DeviceMeter second(procfs_.path(), false, book);
  for (const int pid : {7, 8, 9}) procfs_.add(pid, group(std::to_string(pid)));
  first.update(1s, List{process(7), process(8)});
  second.update(1s, List{process(8), process(9)});
  EXPECT_TRUE(second.workloads().contains(unit("8"))) << "it has a name already";
  EXPECT_EQ(second.workloads().at(all_others()).processes, 1U);
}

TEST_F(DeviceMeterTest, AWorkloadStaysForTenMinutes) {
  procfs_.add(7, group("a"));
  meter_.add_energy(0);
  look(1s, {process(7, 1.0, 5.0)});
  meter_.add_energy(10);
  look(2s, {});
  EXPECT_EQ(at(unit("a")).memory_bytes, std::nullopt);
  const std::uint64_t before = meter_.generation();
  look(10min, {});
  EXPECT_EQ(energy(unit("a")), 10);
  EXPECT_EQ(at(unit("a")).share, 0);
  EXPECT_EQ(meter_.generation(), before);
  look(10min + 1s, {});
  EXPECT_FALSE(meter_.workloads().contains(unit("a")));
  EXPECT_GT(meter_.generation(), before);
  EXPECT_EQ(energy(unattributed()), 0) << "its past is not somebody else's now";
  EXPECT_EQ(book_->workloads().size(), 1U);
}

TEST_F(DeviceMeterTest, AProcessStaysForAMinute) {
  procfs_.add(7, group("a"));
  look(1s, {process(7, 1.0)});
  look(2s, {});
  EXPECT_FALSE(use(7).present);
  look(60s, {});
  EXPECT_EQ(meter_.processes().size(), 1U);
  look(61s, {});
  EXPECT_EQ(meter_.processes().size(), 0U);
}

TEST_F(DeviceMeterTest, NobodyIsKnownToBeOnALostDevice) {
  procfs_.add(7, group("a"));
  meter_.add_energy(0);
  look(1s, {process(7, 1.0)});
  meter_.interrupt();
  EXPECT_FALSE(meter_.is_known());
  EXPECT_FALSE(use(7).present);
  meter_.add_energy(10);
  EXPECT_EQ(energy(unattributed()), 10);
  look(20min, {process(7, 1.0)});
  meter_.add_energy(15);
  EXPECT_EQ(energy(unit("a")), 5);
  EXPECT_TRUE(use(7).present);
}

TEST_F(DeviceMeterTest, ItsGenerationGrowsWhenSomebodyComesOrGoes) {
  procfs_.add(7, group("a"));
  std::uint64_t last = meter_.generation();
  const auto grew = [&](Nanoseconds now, const List& listed) {
    look(now, listed);
    return std::exchange(last, meter_.generation()) < meter_.generation();
  };
  EXPECT_TRUE(grew(1s, {process(7, 1.0)}));
  EXPECT_FALSE(grew(2s, {process(7, 0.5)}));
  EXPECT_TRUE(grew(3s, {}));
  EXPECT_FALSE(grew(4s, {}));
  EXPECT_TRUE(grew(5s, {process(7, 0.5)}));
}

// Most listed processes are gone before the look, and each list has new pids.
TEST_F(DeviceMeterTest, AFloodOfPidsTakesTheRoomOfTwoThousand) {
  for (int pid = 100; pid < 110; ++pid) procfs_.add(pid, group("a"));
  int next = 1000;
  for (int step = 0; step < 20; ++step) {
    List listed;
    for (int pid = 100; pid < 110; ++pid) listed.push_back(process(pid, 0.125));
    for (int i = 0; i < 2500; ++i) listed.push_back(process(next++, 0.001));
    look(step * 1s, listed);
    ASSERT_LE(meter_.processes().size(), DeviceMeter::kMostProcesses);
    ASSERT_TRUE(use(100).present);
  }
  EXPECT_EQ(meter_.workloads().size(), 2U);
  EXPECT_EQ(at(unit("a")).busy_seconds, 25);
  EXPECT_NEAR(*at(unattributed()).busy_seconds, 50, 1e-9) << "also of those that are not told apart";
}

TEST_F(DeviceMeterTest, TakesItsWorkloadsOutOfTheBook) {
  procfs_.add(7, group("a"));
  {
    DeviceMeter other(procfs_.path(), false, book_);
    other.update(1s, List{process(7)});
    EXPECT_EQ(book_->workloads().size(), 2U);
  }
  EXPECT_EQ(book_->workloads().size(), 1U);
}

const WorkloadId kUnit{cgroup::Kind::systemd_unit, "a.service"};

class Costs : public testing::Test {
 protected:
  Costs() { procfs_.add(7, "/system.slice/a.service"); }

  void look(Nanoseconds now, const std::vector<DeviceProcess>& listed, const DeviceUse& device = {}) {
    meter_.update(now, listed);
    meter_.count_costs(now, true, device);
  }
  static DeviceCost cost_in(const DeviceMeter& meter) {
    const auto account = meter.account({.uuid = "GPU-1", .index = 3}, {});
    for (const AccountEntry& entry : account->entries) {
      if (entry.id == kUnit) return entry.cost;
    }
    return {};
  }
  DeviceCost cost() const { return cost_in(meter_); }

  FakeProcfs procfs_;
  std::shared_ptr<WorkloadBook> book_ = std::make_shared<WorkloadBook>();
  DeviceMeter meter_{procfs_.path(), false, book_};
};

TEST_F(Costs, TimeHeldBusyAndIdle) {
  look(0s, {});
  look(10s, {{7, 100, 4}});
  EXPECT_EQ(cost().held_seconds, 4) << "a new process held the device for as long as it was busy";
  look(20s, {{7, 300, 2}});
  look(30s, {{7, 200, 0}});
  look(40s, {});
  EXPECT_EQ(cost().held_seconds, 34);
  EXPECT_EQ(cost().busy_seconds, 6);
  EXPECT_EQ(cost().idle_seconds, 25.5)
      << "8 and 10 of 24 s; in the last interval as before, because it is not known";
  EXPECT_EQ(cost().peak_memory, 300);
  EXPECT_EQ(cost().uuid, "GPU-1");
  EXPECT_EQ(cost().index, 3U);
}

TEST_F(Costs, TheDevicesBusyTimeCountsForTheOnlyUser) {
  look(0s, {{7}}, {.busy_seconds = 100});
  look(10s, {{7}}, {.busy_seconds = 103});
  EXPECT_EQ(cost().busy_seconds, 3);
  EXPECT_EQ(cost().idle_seconds, 7);
  procfs_.add(8, "/system.slice/b.service");
  look(20s, {{7}, {8}}, {.busy_seconds = 113});
  EXPECT_EQ(cost().busy_seconds, 3) << "which of the two was busy is not known";
}

TEST_F(Costs, ThrottledTimeCountsWhileADeviceIsHeld) {
  look(0s, {});
  meter_.count_costs({}, false, {.throttled = {{"power", 50}}});
  look(1s, {{7}});
  meter_.count_costs({}, false, {.throttled = {{"power", 53}}});
  look(2s, {});
  meter_.count_costs({}, false, {.throttled = {{"power", 60}}});
  EXPECT_EQ(cost().throttled_seconds, (std::map<std::string, double>{{"power", 3}}));
}

TEST_F(Costs, AGapIsNotCounted) {
  look(0s, {{7, {}, 0}});
  meter_.interrupt();
  look(100s, {{7, {}, 0}});
  look(101s, {{7, {}, 0}});
  EXPECT_EQ(cost().held_seconds, 1);
}

TEST_F(Costs, ContinuesAnEarlierProcess) {
  look(0s, {{7, 100, 0}});
  look(5s, {{7, 400, 0}});
  look(10s, {{7, 100, 5}});
  DeviceAccount earlier = *meter_.account({.uuid = "GPU-1", .index = 3}, {});
  earlier.energy_total = 500;
  DeviceMeter meter(procfs_.path(), false, book_);
  meter.resume(earlier, [](Nanoseconds begun) { return begun; });
  meter.add_energy(800);
  EXPECT_EQ(meter.workloads().at(kUnit).energy_joules, 300) << "it held the device before the restart";
  const std::vector<DeviceProcess> listed = {{7, 100, 2}};
  meter.update(20s, listed);
  meter.count_costs(20s, true, {});
  EXPECT_EQ(meter.workloads().at(kUnit).busy_seconds, 7);
  EXPECT_EQ(cost_in(meter).busy_seconds, 7);
  EXPECT_EQ(cost_in(meter).peak_memory, 400);
}

}  // namespace

}  // namespace gpumeter::workloads
