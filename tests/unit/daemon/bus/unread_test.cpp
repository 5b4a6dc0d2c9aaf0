#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/bus/bus.hpp"
#include "tests/fakes/tree.hpp"

namespace gpumeter {
namespace {

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
