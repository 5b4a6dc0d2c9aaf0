#include "collectors/host/part.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <sstream>

#include "base/log.hpp"
#include "collectors/api/machine.hpp"
#include "collectors/jobs/model/run_list.hpp"
#include "exporter/health/report.hpp"
#include "exporter/store/store.hpp"
#include "tests/fakes/fake_clock.hpp"
#include "tests/fakes/tree.hpp"
#include "tests/fakes/walked.hpp"

// Which GPUs a link joins: directly, by a switch that both reach, or not at all.

namespace gpumeter {
namespace {

class HostTest : public testing::Test {
 protected:
  void add(const std::string& address, std::vector<std::string> linked_to) {
    const std::string folder = "devices/pci0000:" + address.substr(5, 2) + "/" + address;
    sysfs_.write(folder + "/uevent", "DRIVER=nvidia\nPCI_CLASS=30200\nPCI_ID=10DE:2330\n");
    sysfs_.write(folder + "/numa_node", "0\n");
    sysfs_.write("bus/pci/devices/" + address, "-> ../../../" + folder);
    DeviceInfo info;
    info.uuid = info.pci_address = address;
    info.linked_to = std::move(linked_to);
    devices_.push_back({"nvidia", static_cast<unsigned>(devices_.size()), info, ""});
  }

  /// The paths between the first GPU and the second, and back: "link link".
  std::string paths() {
    Store store;
    Machine machine;
    machine.read_devices.publish(devices_);
    const FakeClock clock;
    Log log(clock, {});
    const Paths paths{sysfs_.path(), sysfs_.path()};
    const auto part = host::kPart.open({"host", store, machine, clock, log, paths});
    part->turn(Nanoseconds(1));
    const std::string page = walked(store);
    return path(page, 0, 1) + " " + path(page, 1, 0);
  }

  std::string path(const std::string& page, std::size_t from, std::size_t to) const {
    std::istringstream lines(page);
    for (std::string line; std::getline(lines, line);) {
      const bool is_it = line.find("uuid=\"" + devices_[from].info.uuid) != std::string::npos &&
                         line.find("peer=\"" + devices_[to].info.uuid) != std::string::npos;
      const std::size_t at = line.find("path=\"") + 6;
      if (is_it) return line.substr(at, line.find('"', at) - at);
    }
    return "none";
  }

  Tree sysfs_{{}};
  std::vector<DeviceIdentity> devices_;
};

TEST_F(HostTest, ASwitchJoinsTheGpusThatReachIt) {
  add("0000:18:00.0", {"switch:0000:85:00.0", "switch:0000:86:00.0"});
  add("0000:2a:00.0", {"switch:0000:86:00.0"});
  EXPECT_EQ(paths(), "link link");
}

TEST_F(HostTest, OtherSwitchesDoNot) {
  add("0000:18:00.0", {"switch:0000:85:00.0"});
  add("0000:2a:00.0", {"switch:0000:86:00.0"});
  EXPECT_EQ(paths(), "node node");
}

TEST_F(HostTest, ALinkOfOneSideLeadsBothWays) {
  add("0000:18:00.0", {"0000:2a:00.0"});
  add("0000:2a:00.0", {});
  EXPECT_EQ(paths(), "link link");
}

TEST_F(HostTest, SwitchesBeyondTheBusAreOneDomain) {
  add("0000:18:00.0", {"switch:"});
  add("0000:2a:00.0", {"switch:"});
  EXPECT_EQ(paths(), "link link");
}

TEST_F(HostTest, TwoGpusWithLinksToAThirdAreNotLinked) {
  add("0000:18:00.0", {"0000:3a:00.0"});
  add("0000:2a:00.0", {"0000:3a:00.0"});
  add("0000:3a:00.0", {});
  EXPECT_EQ(paths(), "node node");
}

}  // namespace
}  // namespace gpumeter
