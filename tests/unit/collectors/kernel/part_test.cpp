#include "collectors/kernel/part.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <memory>
#include <string>

#include "base/log.hpp"
#include "collectors/api/event_ledger.hpp"
#include "collectors/api/machine.hpp"
#include "collectors/jobs/model/run_list.hpp"
#include "exporter/health/report.hpp"
#include "exporter/store/store.hpp"
#include "tests/fakes/fake_clock.hpp"
#include "tests/fakes/tree.hpp"
#include "tests/fakes/walked.hpp"

// The part reads a log in a file, joins its lines to devices, counts them once, and goes on after a restart.

namespace gpumeter::kernel {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

constexpr const char* kGpu = "0000:3d:00.0";

class KernelPartTest : public testing::Test {
 protected:
  KernelPartTest() {
    clock_.advance(hours(10));
    machine_.events = ledger_;
    add_device(kGpu);
    settings_.log = tree_ / "kmsg";
    tree_.write("kmsg", "");
    open();
  }

  void add_device(const std::string& address) {
    const std::string folder = "devices/pci0000:" + address.substr(5, 2) + "/0000:3c:00.0/" + address;
    tree_.write("sys/" + folder + "/uevent", "DRIVER=amdgpu\nPCI_CLASS=30200\nPCI_ID=1002:74A1\n");
    tree_.write("sys/bus/pci/devices/" + address, "-> ../../../" + folder);
    DeviceInfo info;
    info.uuid = info.pci_address = address;
    devices_.push_back({"amd", static_cast<unsigned>(devices_.size()), info, ""});
    machine_.known_devices.publish(devices_);
  }

  void open(std::string_view section = {}, bool is_of_this_boot = true) {
    part_ = kPart.open({"kernel", store_, machine_, clock_, log_, paths_, seconds(10), &settings_});
    if (!section.empty()) {
      ASSERT_TRUE(dynamic_cast<Keeps&>(*part_).resume(section, is_of_this_boot));
    }
  }
  /// The state goes on in another process, which counts from 0 and finds no event again.
  void restart(const std::string& section, bool is_of_this_boot = true) {
    part_.reset();
    ledger_ = std::make_shared<EventLedger>(clock_, describe);
    machine_.events = ledger_;
    open(section, is_of_this_boot);
  }
  std::string save() { return dynamic_cast<Keeps&>(*part_).save(); }

  /// The kernel writes a line so long ago.
  void line(const std::string& text, Nanoseconds ago = {}, int priority = 4) {
    const auto since_boot = (clock_.monotonic() - ago) / std::chrono::microseconds(1);
    std::ofstream(tree_ / "kmsg", std::ios::app)
        << priority << "," << sequence_++ << "," << since_boot << ",-;" << text << "\n";
  }
  Nanoseconds turn() {
    clock_.advance(seconds(1));
    return part_->turn(clock_.monotonic());
  }
  /// The series above 0, without the figures of the part itself.
  std::string page() {
    std::string text = walked(store_), lines;
    while (!text.empty()) {
      const std::string one = text.substr(0, text.find('\n') + 1);
      if (!one.starts_with("gpumeter_") && !one.ends_with(" 0\n")) lines += one;
      text.erase(0, one.size());
    }
    return lines;
  }
  std::string kinds() {
    std::string text;
    for (const EventRecord& each : ledger_->after(0)) text += each.pci_address + " " + each.kind + "\n";
    return text;
  }

  FakeClock clock_;
  Tree tree_{{}};
  Store store_;
  Machine machine_;
  std::shared_ptr<EventLedger> ledger_ = std::make_shared<EventLedger>(clock_, describe);
  Log log_{clock_, {}};
  const Paths paths_{tree_ / "sys", tree_.path()};
  Settings settings_;
  std::vector<DeviceIdentity> devices_;
  std::uint64_t sequence_ = 7;
  std::shared_ptr<Part> part_;
};

constexpr const char* kTimeout =
    "amdgpu 0000:3d:00.0: amdgpu: ring gfx_0.0.0 timeout, signaled seq=42, emitted seq=44";
const std::string kCounted = "gpu_events_total{gpu=\"0\",uuid=\"0000:3d:00.0\",event=\"ring_timeout\"} ";

TEST_F(KernelPartTest, CountsALineOfADeviceAndKeepsItsText) {
  turn();
  EXPECT_EQ(page(), "");
  line(kTimeout);
  turn();
  EXPECT_EQ(page(), kCounted + "1\n");
  const auto events = ledger_->after(0);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].text, kTimeout);
  EXPECT_EQ(events[0].time, clock_.realtime()) << "a live line has the time of its receipt";
  EXPECT_FALSE(events[0].is_time_estimated);
  EXPECT_NE(events[0].meaning, "");
}

TEST_F(KernelPartTest, LinesOfUserSpaceAreNone) {
  constexpr int kUser = 12;
  line(kTimeout, {}, kUser);
  turn();
  EXPECT_EQ(page() + kinds(), "");
}

TEST_F(KernelPartTest, ALineBeforeTheStartHasItsOwnTime) {
  line(kTimeout, seconds(600));
  turn();
  const auto events = ledger_->after(0);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].time, clock_.realtime() - seconds(601));
  EXPECT_TRUE(events[0].is_time_estimated);
  EXPECT_EQ(page(), kCounted + "1\n");
}

TEST_F(KernelPartTest, AnOldLineIsShownAndIsNoNews) {
  line(kTimeout, hours(2));
  turn();
  EXPECT_EQ(kinds(), "0000:3d:00.0 ring_timeout\n");
  EXPECT_EQ(page(), "");
}

TEST_F(KernelPartTest, ARestartCountsNoLineTwiceAndMissesNone) {
  line(kTimeout);
  turn();
  const std::string section = save();
  clock_.advance(seconds(90));
  line(kTimeout);
  restart(section);
  turn();
  EXPECT_EQ(page(), kCounted + "1\n") << "the line since the restart";
  EXPECT_EQ(kinds(), "0000:3d:00.0 ring_timeout\n0000:3d:00.0 ring_timeout\n") << "both are shown again";
  EXPECT_EQ(save(), section.substr(0, section.find("log")) + save().substr(save().find("log")));
}

TEST_F(KernelPartTest, AnEventOfAnEarlierProcessIsNoNews) {
  line("NVRM: GPU 0000:3d:00.0: GPU has fallen off the bus.");
  turn();
  EXPECT_EQ(page(), "gpu_events_total{gpu=\"0\",uuid=\"0000:3d:00.0\",event=\"off_bus\"} 1\n");
  const std::string section = save();
  for (const bool is_of_this_boot : {true, false}) {
    if (!is_of_this_boot) tree_.write("kmsg", "");
    clock_.advance(hours(2));
    restart(section, is_of_this_boot);
    turn();
    EXPECT_EQ(page(), "") << "exporter/health takes a first count above 0 for news";
  }
}

TEST_F(KernelPartTest, AReloadCountsNothingTwice) {
  line(kTimeout);
  turn();
  open(save());
  turn();
  EXPECT_EQ(page(), kCounted + "1\n");
  EXPECT_EQ(ledger_->after(0).size(), 1U);
  EXPECT_EQ(ledger_->after(0).front().count, 1U);
}

TEST_F(KernelPartTest, AnotherBootStartsAtItsFirstLine) {
  line(kTimeout);
  turn();
  const std::string section = save();
  tree_.write("kmsg", "");
  sequence_ = 0;
  clock_.advance(seconds(90));
  line(kTimeout);
  restart(section, false);
  turn();
  EXPECT_EQ(page(), kCounted + "1\n");
}

TEST_F(KernelPartTest, AWrongSectionIsRefused) {
  EXPECT_FALSE(dynamic_cast<Keeps&>(*part_).resume("log\tx\n", true));
}

TEST_F(KernelPartTest, OneIncidentCountsOnce) {
  line("amdgpu 0000:3d:00.0: amdgpu: GPU reset begin!");
  line("amdgpu 0000:3d:00.0: amdgpu: GPU reset succeeded, trying to resume");
  line("NVRM: Xid (PCI:0000:3d:00): 79, GPU has fallen off the bus.");
  line("NVRM: GPU 0000:3d:00.0: GPU has fallen off the bus.");
  turn();
  EXPECT_EQ(page(), "gpu_events_total{gpu=\"0\",uuid=\"0000:3d:00.0\",event=\"reset\"} 1\n");
}

std::string count_of(const std::string& label) {
  return "gpu_events_total{gpu=\"0\",uuid=\"0000:3d:00.0\",event=\"" + label + "\"} 1\n";
}

TEST_F(KernelPartTest, AResetWithoutASuccessHasFailedAfterAMinute) {
  line("amdgpu 0000:3d:00.0: amdgpu: GPU reset begin!");
  turn();
  clock_.advance(seconds(58));
  turn();
  EXPECT_EQ(page(), "");
  turn();
  EXPECT_EQ(page(), count_of("reset_failed"));
  const auto events = ledger_->after(0);
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[1].text, "amdgpu 0000:3d:00.0: amdgpu: GPU reset begin!: no success within 60 s");
  EXPECT_EQ(events[1].severity + " " + events[1].action, "failed reboot");
  clock_.advance(seconds(120));
  turn();
  EXPECT_EQ(page(), count_of("reset_failed"));
}

TEST_F(KernelPartTest, AResetThatSucceedsLateInTheMinuteHasNotFailed) {
  line("xe 0000:3d:00.0: [drm] Tile0: GT0: reset started");
  turn();
  clock_.advance(seconds(50));
  line("xe 0000:3d:00.0: [drm] Tile0: GT0: reset done");
  turn();
  clock_.advance(seconds(120));
  turn();
  EXPECT_EQ(page(), count_of("reset"));
}

TEST_F(KernelPartTest, TheSuccessOfAResetMayBeAmongLostRecords) {
  line("amdgpu 0000:3d:00.0: amdgpu: GPU reset begin!");
  turn();
  ++sequence_;
  line("amdgpu 0000:99:00.0: amdgpu: ring gfx timeout");
  turn();
  clock_.advance(seconds(120));
  turn();
  EXPECT_EQ(page(), "");
}

TEST_F(KernelPartTest, AFailedResetIsNoReset) {
  line("amdgpu 0000:3d:00.0: amdgpu: GPU reset begin!");
  line("amdgpu 0000:3d:00.0: amdgpu: GPU reset(1) failed");
  line("amdgpu 0000:3d:00.0: amdgpu: GPU Recovery Failed: -110");
  turn();
  EXPECT_EQ(page(), count_of("reset_failed"));
}

TEST_F(KernelPartTest, ResetsOfEnginesAndHangingDevicesHaveNamesOfTheirOwn) {
  line("xe 0000:3d:00.0: [drm] Tile0: GT0: Engine reset: engine_class=ccs, logical_mask: 0x1, guc_id=9");
  line("xe 0000:3d:00.0: [drm] device wedged, needs recovery");
  line("xe 0000:3d:00.0: [drm] *ERROR* CRITICAL: Xe has declared device 0000:3d:00.0 as wedged.");
  turn();
  EXPECT_EQ(page(), count_of("engine_reset") + count_of("reset_failed") + count_of("wedged"));
}

TEST_F(KernelPartTest, AFallWithoutAnXidCounts) {
  line("NVRM: GPU 0000:3d:00.0: GPU has fallen off the bus.");
  turn();
  EXPECT_EQ(page(), "gpu_events_total{gpu=\"0\",uuid=\"0000:3d:00.0\",event=\"off_bus\"} 1\n");
}

TEST_F(KernelPartTest, AnErrorOfABridgeConcernsTheGpusBelow) {
  tree_.write("sys/devices/pci0000:3d/0000:3c:00.0/uevent", "PCI_CLASS=60400\nPCI_ID=10B5:8749\n");
  line(
      "pcieport 0000:3c:00.0: PCIe Bus Error: severity=Uncorrectable (Fatal), type=Transaction Layer, "
      "(Requester ID)");
  line(
      "pcieport 0000:99:00.0: PCIe Bus Error: severity=Uncorrectable (Fatal), type=Transaction Layer, "
      "(Requester ID)");
  turn();
  EXPECT_EQ(kinds(), "0000:3d:00.0 aer\n");
  EXPECT_TRUE(ledger_->after(0).front().text.starts_with("bridge 0000:3c:00.0: "));
}

TEST_F(KernelPartTest, AStormIsReadInBites) {
  for (int i = 0; i < 5000; ++i) line(kTimeout);
  EXPECT_LT(turn(), seconds(1));
  EXPECT_LT(turn(), seconds(1));
  EXPECT_EQ(turn(), seconds(1));
  EXPECT_EQ(page(), kCounted + "5000\n");
  ASSERT_EQ(ledger_->after(0).size(), 1U);
}

TEST_F(KernelPartTest, LostRecordsAreCounted) {
  line(kTimeout);
  sequence_ += 5;
  line(kTimeout);
  turn();
  EXPECT_NE(walked(store_).find("gpumeter_kernel_log_lost_total{} 5\n"), std::string::npos);
  EXPECT_NE(walked(store_).find("gpumeter_kernel_log_readable{} 1\n"), std::string::npos);
}

TEST_F(KernelPartTest, AMissingLogIsNotReadable) {
  settings_.log = tree_ / "none";
  open();
  turn();
  EXPECT_NE(walked(store_).find("gpumeter_kernel_log_readable{} 0\n"), std::string::npos);
  settings_.log = "off";
  open();
  turn();
  EXPECT_EQ(walked(store_).find("gpumeter_kernel_log"), std::string::npos);
}

}  // namespace
}  // namespace gpumeter::kernel
