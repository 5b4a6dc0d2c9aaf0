#include "daemon/bus/bus.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <set>
#include <thread>
#include <vector>

#include "tests/fakes/tree.hpp"

namespace gpumeter {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::Pair;

/// Cards whose files hang, as with a hanging driver. Shared with the threads that are left behind.
struct HangingCards {
  Mutex mutex;
  Condition changed;
  std::set<std::string> cards GPUMETER_GUARDED_BY(mutex);

  std::optional<pci::Function> read(const std::string& folder) {
    {
      MutexLock lock(mutex);
      while (cards.contains(folder.substr(folder.rfind('/') + 1))) {
        changed.wait_for(mutex, 1s);
      }
    }
    return pci::read_function(folder);
  }
  void set(const std::string& card, bool hangs) {
    MutexLock lock(mutex);
    hangs ? (void)cards.insert(card) : (void)cards.erase(card);
    changed.notify_all();
  }
};

class BusWatcherTest : public testing::Test {
 protected:
  BusWatcherTest() {
    for (const char* card : {kFirst, kSecond}) plug(card);
  }
  ~BusWatcherTest() override {
    for (const char* card : {kFirst, kSecond}) release(card);
    EXPECT_TRUE(scheduler_.stop(clock_.monotonic() + 5s));
  }

  static std::string uevent(const std::string& card) { return "bus/pci/devices/" + card + "/uevent"; }
  void plug(const std::string& card) {
    tree_.write(uevent(card), "DRIVER=amdgpu\nPCI_CLASS=38000\nPCI_ID=1002:73BF\n");
  }
  void hang(const std::string& card) const { hanging_->set(card, true); }
  void release(const std::string& card) const { hanging_->set(card, false); }
  std::vector<std::string> logged() {
    MutexLock lock(mutex_);
    return told_;
  }
  int looks() {
    MutexLock lock(mutex_);
    return looks_;
  }
  void look() {
    const int before = looks();
    watcher_->request();
    while (looks() == before) std::this_thread::sleep_for(2ms);
  }
  void start() {
    watcher_->start(scheduler_);
    ASSERT_TRUE(scheduler_.start());
    while (looks() == 0) std::this_thread::sleep_for(2ms);
  }

  static constexpr const char* kFirst = "0000:03:00.0";
  static constexpr const char* kSecond = "0000:0a:00.0";
  const SystemClock clock_;
  Scheduler scheduler_{clock_};
  const Tree tree_{{}};
  const std::shared_ptr<HangingCards> hanging_ = std::make_shared<HangingCards>();
  Mutex mutex_;
  Bus seen_ GPUMETER_GUARDED_BY(mutex_);
  int looks_ GPUMETER_GUARDED_BY(mutex_) = 0;
  std::vector<std::string> told_ GPUMETER_GUARDED_BY(mutex_);
  const std::shared_ptr<BusWatcher> watcher_ = std::make_shared<BusWatcher>(
      tree_.path(), tree_ / "proc", clock_,
      BusWatcher::Reports{[this](const Bus& bus) {
                            MutexLock lock(mutex_);
                            seen_ = bus;
                            ++looks_;
                          },
                          [this](const std::string& address, bool answers) {
                            MutexLock lock(mutex_);
                            told_.push_back(address + (answers ? " answers" : " hangs"));
                          }},
      [hanging = hanging_](const std::string& folder) { return hanging->read(folder); });

  Bus seen() {
    MutexLock lock(mutex_);
    return seen_;
  }
};

TEST_F(BusWatcherTest, SeesTheCardsInOrder) {
  start();
  EXPECT_THAT(seen().addresses, ElementsAre(kFirst, kSecond));
  EXPECT_THAT(seen().by_vendor, ElementsAre(Pair("amd", 2U)));
}

TEST_F(BusWatcherTest, ACardThatHangsHidesNoOther) {
  hang(kFirst);
  start();
  EXPECT_THAT(seen().addresses, ElementsAre(kSecond));
  EXPECT_THAT(logged(), ElementsAre(std::string(kFirst) + " hangs"));
  look();
  EXPECT_THAT(logged(), ElementsAre(std::string(kFirst) + " hangs"));
}

TEST_F(BusWatcherTest, ACardThatHangsCountsAsItWasSeenLast) {
  start();
  hang(kSecond);
  look();
  EXPECT_THAT(seen().by_vendor, ElementsAre(Pair("amd", 2U)));
  release(kSecond);
  while (logged().size() < 2) look();
  EXPECT_THAT(logged(), ElementsAre(std::string(kSecond) + " hangs", std::string(kSecond) + " answers"));
}

TEST_F(BusWatcherTest, ACardThatDoesNotSayWhatItIsCountsAsItWasSeenLast) {
  start();
  tree_.write(uevent(kSecond), "");
  look();
  EXPECT_THAT(seen().by_vendor, ElementsAre(Pair("amd", 2U)));
  EXPECT_THAT(logged(), ElementsAre(std::string(kSecond) + " hangs"));
}

TEST_F(BusWatcherTest, ACardThatIsPulledIsGone) {
  start();
  tree_.remove("bus/pci/devices/" + std::string(kSecond));
  look();
  EXPECT_THAT(watcher_->bus()->by_vendor, ElementsAre(Pair("amd", 1U)));
}

TEST_F(BusWatcherTest, AFunctionOfAMachineHasItsName) {
  tree_.write(uevent(kSecond), "DRIVER=vfio-pci\nPCI_CLASS=38000\nPCI_ID=1002:73BF\n");
  tree_.write("proc/100/cgroup", "0::/qemu.slice/101.scope\n");
  tree_.write("proc/100/cmdline", "vfio-pci,host=" + std::string(kSecond));
  start();
  EXPECT_THAT(seen().host.machines, ElementsAre(Pair(kSecond, "101")));
  tree_.remove("proc/100");
  look();
  EXPECT_TRUE(seen().host.machines.empty());
}

TEST_F(BusWatcherTest, IsEmptyWhereItIsNotWanted) {
  watcher_->want(false);
  start();
  EXPECT_TRUE(seen().addresses.empty());
}

pci::Function function(std::uint16_t vendor, const std::string& driver, std::uint8_t bus = 0x0c) {
  pci::Function made;
  made.address = {0, bus, 0, 0};
  made.vendor = vendor;
  made.device = 0x73bf;
  made.class_code = 0x030000;
  made.driver = driver;
  return made;
}

const std::map<std::string, CollectorTrouble> kBoth = {{"amd", {}}, {"nvidia", {}}};

/// Why and remedy of one function; empty if it is not unread.
std::string text_of(const pci::Function& adapter, const Host& host = {},
                    const std::map<std::string, CollectorTrouble>& collectors = kBoth,
                    const std::vector<DeviceStatus>& devices = {}) {
  Bus bus;
  bus.add(adapter);
  bus.host = host;
  const std::vector<UnreadDevice> unread = unread_devices(bus, devices, collectors);
  return unread.empty() ? "" : to_string(unread.front());
}

constexpr std::uint16_t kAmd = 0x1002;
constexpr std::uint16_t kNvidia = 0x10de;
constexpr std::uint16_t kIntel = 0x8086;

TEST(UnreadDevices, AFunctionThatIsReadOrNoGpuIsNotListed) {
  DeviceStatus device;
  device.pci_address = "0000:0c:00.0";
  EXPECT_EQ(text_of(function(kAmd, "amdgpu"), {}, kBoth, {device}), "");
  EXPECT_EQ(text_of(function(0x1a03, "ast")), "");
}

TEST(UnreadDevices, AMissingDeviceIsUnreadIfTheBusShowsItsFunction) {
  DeviceStatus device;
  device.pci_address = "0000:0c:00.0";
  device.state = kMissing;
  EXPECT_EQ(text_of(function(kAmd, ""), {}, kBoth, {device}),
            "0000:0c:00.0 amd 1002:73bf: no driver is bound to it: the kernel module amdgpu is not loaded; "
            "modprobe amdgpu; if there is no such module, install the driver");
}

TEST(UnreadDevices, ADriverThatIsLoadedAndNotBound) {
  EXPECT_EQ(text_of(function(kNvidia, ""), {{"nvidia"}, {}}),
            "0000:0c:00.0 nvidia 10de:73bf: no driver is bound to it, although the kernel module nvidia is "
            "loaded; see dmesg for the reason; then echo 0000:0c:00.0 > /sys/bus/pci/drivers/nvidia/bind");
}

TEST(UnreadDevices, OtherDrivers) {
  EXPECT_EQ(
      text_of(function(kNvidia, "vfio-pci")),
      "0000:0c:00.0 nvidia 10de:73bf (vfio-pci): it is bound to vfio-pci, for a virtual machine; none if "
      "a virtual machine uses it; otherwise bind it to nvidia");
  EXPECT_EQ(text_of(function(kNvidia, "nouveau")),
            "0000:0c:00.0 nvidia 10de:73bf (nouveau): it is bound to nouveau, which the collector nvidia "
            "does not read; "
            "bind it to nvidia instead; install that driver if necessary");
}

/// /proc of a host. The arguments of machine 3 are those of QEMU 8 in a log of libvirt, those of machine 101
/// Proxmox's; 4000 claims to be a machine and is a user's process.
Tree host_with_machines() {
  const auto command_line = [](std::string arguments) {
    std::ranges::replace(arguments, ' ', '\0');
    return arguments;
  };
  const std::string libvirt = command_line(
      R"(/usr/bin/qemu-system-x86_64 -name guest=win11,debug-threads=on -S -device {"driver":"qxl-vga","id":"video0","bus":"pcie.0"} )"
      R"(-device {"driver":"vfio-pci","host":"0000:02:00.0","id":"hostdev0","bootindex":1,"bus":"pci.4","addr":"0x0"} )"
      R"(-device {"driver":"vfio-pci","host":"0000:01:00.0","id":"hostdev1","bus":"pci.6","addr":"0x0"} )");
  const std::string proxmox = command_line(
      "/usr/bin/kvm -id 101 -name web,debug-threads=on -device "
      "vfio-pci,host=0000:0b:00.0,id=hostpci0,bus=ich9-pcie-port-1,addr=0x0 ");
  return make_tree(
      {{"3000/cgroup", "0::/machine.slice/machine-qemu\\x2d3\\x2dwin11.scope/libvirt/emulator\n"},
       {"3000/cmdline", libvirt},
       {"3100/cgroup", "0::/qemu.slice/101.scope\n"},
       {"3100/cmdline", proxmox},
       {"3200/cgroup", "0::/machine.slice/machine-qemu\\x2d4\\x2ddebian.scope/libvirt/emulator\n"},
       {"3200/cmdline", "/usr/bin/qemu-system-x86_64"},
       {"4000/cgroup",
        "0::/user.slice/user-1000.slice/user@1000.service/machine.slice/machine-qemu\\x2d1\\x2dmine.scope\n"},
       {"4000/cmdline", proxmox},
       {"self/cgroup", "0::/\n"}});
}

TEST(GivenDevices, MachinesAreFoundByTheirControlGroupsAndCommandLines) {
  const Tree proc = host_with_machines();
  EXPECT_THAT(
      machines_with_devices(proc.path()),
      ElementsAre(Pair("0000:01:00.0", "win11"), Pair("0000:02:00.0", "win11"), Pair("0000:0b:00.0", "101")));
  EXPECT_TRUE(machines_with_devices(proc / "none").empty());
}

TEST(GivenDevices, AGpuOfAMachineIsGivenAndNotUnread) {
  Bus bus;
  bus.add(function(kNvidia, "vfio-pci", 0x02));
  bus.add(function(kNvidia, "vfio-pci", 0x03));
  EXPECT_TRUE(bus.lends());
  bus.host.machines = {{"0000:02:00.0", "win11"}, {"0000:04:00.0", "debian"}};
  ASSERT_EQ(bus.given().size(), 1U);
  EXPECT_EQ(to_string(unread_devices(bus, {}, kBoth).front()),
            "0000:02:00.0 nvidia 10de:73bf (vfio-pci): it is given to the virtual machine win11; run "
            "gpumeter in the "
            "virtual machine to read it");
}

TEST(UnreadDevices, CollectorsThatAreDisabledOrBroken) {
  EXPECT_EQ(text_of(function(kAmd, "amdgpu"), {}, {{"amd", {false, ""}}}),
            "0000:0c:00.0 amd 1002:73bf (amdgpu): the collector amd is disabled; set collectors.amd.enabled: "
            "true, or start with --collector.amd");
  EXPECT_EQ(
      text_of(function(kNvidia, "nvidia"), {}, {{"nvidia", {true, "libnvidia-ml.so.1: not found"}}}),
      "0000:0c:00.0 nvidia 10de:73bf (nvidia): its collector does not work: libnvidia-ml.so.1: not found; "
      "see the reason");
}

TEST(UnreadDevices, BothDriversOfIntelAreRead) {
  const std::map<std::string, CollectorTrouble> disabled = {{"intel", {false, ""}}};
  const std::map<std::string, CollectorTrouble> enabled = {{"intel", {}}};
  EXPECT_EQ(
      text_of(function(kIntel, "xe"), {}, disabled),
      "0000:0c:00.0 intel 8086:73bf (xe): the collector intel is disabled; set collectors.intel.enabled: "
      "true, or start with --collector.intel");
  EXPECT_EQ(
      text_of(function(kIntel, "xe"), {}, enabled),
      "0000:0c:00.0 intel 8086:73bf (xe): its driver does not offer it; see the log of gpumeter, and dmesg");
}

TEST(UnreadDevices, ANodeThatIsMissingOrClosedToTheUser) {
  const Tree tree({{"module/nvidia/version", "550\n"}, {"dev/null0", ""}});
  Host host = look_at_host(tree.path(), tree / "dev");
  EXPECT_EQ(host.modules, std::set<std::string>{"nvidia"});
  EXPECT_EQ(text_of(function(kNvidia, "nvidia"), host),
            "0000:0c:00.0 nvidia 10de:73bf (nvidia): the device node " + (tree / "dev") +
                "/nvidiactl is missing; create it: nvidia-modprobe -c 0, or start nvidia-persistenced; in a "
                "container, pass the driver in");
  const Tree closed({{"module/nvidia/version", "550\n"}, {"dev/nvidiactl", ""}});
  EXPECT_EQ(look_at_host(closed.path(), closed / "dev").nvidia_node.why, "");
  if (geteuid() == 0) return;  // root may open every file
  ASSERT_EQ(chmod((closed / "dev/nvidiactl").c_str(), 0), 0);
  EXPECT_EQ(look_at_host(closed.path(), closed / "dev").nvidia_node.why,
            "the user of gpumeter may not open " + (closed / "dev") + "/nvidiactl");
}

}  // namespace
}  // namespace gpumeter
