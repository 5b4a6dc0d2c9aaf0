#include <gtest/gtest.h>

#include "exporter/json/api.hpp"

namespace gpumeter {
namespace {

using std::chrono::seconds;

TEST(ParseHealth, ReadsWhatTheDaemonWrites) {
  health::Report report;
  report.at = seconds(100);
  health::DeviceHealth& device = report.devices.emplace_back();
  device.gpu = "3";
  device.uuid = "GPU-\"1\"";
  device.vendor = "nvidia";
  device.model = "H100";
  device.pci_address = "0000:17:00.0";
  device.state = health::State::failed;
  device.since = seconds(90);
  device.findings = {{"xid_79", health::Severity::failed, health::Action::reboot, "XID 79", 1, seconds(90),
                      "GpuXid", "gpuxid"}};
  report.machine = {{"devices_missing", health::Severity::failed, health::Action::reboot, "7 of 8", 7,
                     seconds(80), "GpuExpectedMissing", "gpuexpectedmissing"}};
  report.state = health::State::failed;
  const std::string body = health_json(report, seconds(100));
  const Result<health::Report> read = parse_health_json(body, seconds(5000));
  ASSERT_TRUE(read) << read.error().message();
  EXPECT_EQ(read->devices.front().since, seconds(4990));
  EXPECT_EQ(read->machine.front().since, seconds(4980));
  EXPECT_EQ(health_json(*read, seconds(5000)), body);
}

TEST(ParseHealth, RefusesEverythingElse) {
  const std::string start = "the answer is not that of this version: ";
  for (const char* body : {"", "[]", "{}", "{\"devices\":[{}],\"machine\":[],\"state\":\"ok\"}",
                           "{\"devices\":[],\"machine\":[],\"state\":\"splendid\"}", "{\"devices\":7}"}) {
    const Result<health::Report> read = parse_health_json(body, {});
    ASSERT_FALSE(read) << body;
    EXPECT_EQ(read.error().message().find(start), 0U) << read.error().message();
  }
}

}  // namespace
}  // namespace gpumeter
