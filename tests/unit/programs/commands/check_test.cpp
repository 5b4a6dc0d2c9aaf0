#include <gtest/gtest.h>

#include "programs/commands/commands.hpp"

namespace gpumeter {
namespace {

using health::Action;
using health::DeviceHealth;
using health::Finding;
using health::Report;
using health::Severity;
using health::State;
using std::chrono::seconds;

Finding finding(const std::string& reason, Severity severity, Action action) {
  return {reason, severity, action, "What | happened", 1, seconds(88), "", ""};
}
const Finding kXid = finding("xid_79", Severity::failed, Action::reboot);
const Finding kHot = finding("thermal_throttling", Severity::degraded, Action::drain);

DeviceHealth device(unsigned gpu, State state, const std::vector<Finding>& findings = {}) {
  DeviceHealth device;
  device.gpu = std::to_string(gpu);
  device.uuid = "GPU-" + device.gpu;
  device.model = "H100";
  device.state = state;
  device.findings = findings;
  return device;
}

Report report(const std::vector<DeviceHealth>& devices, const std::vector<Finding>& machine = {}) {
  Report report;
  report.at = seconds(100);
  report.devices = devices;
  report.machine = machine;
  return report;
}

std::string text_of(const Report& report, FailOn fail_on = FailOn::each) {
  return check_text(report, check_status(report, fail_on));
}

TEST(CheckText, AllIsWell) {
  EXPECT_EQ(text_of(report({device(0, State::ok)})),
            "GPU OK - 1 GPU ok | ok=1 degraded=0 failed=0 unknown=0\n");
}

TEST(CheckText, OneLineForEachFinding) {
  EXPECT_EQ(text_of(report({device(0, State::failed, {kXid, kHot}), device(1, State::ok)})),
            "GPU CRITICAL - 1 of 2 GPUs failed: GPU 0 xid_79 (reboot) | ok=1 degraded=0 failed=1 unknown=0\n"
            "GPU 0 (H100, GPU-0) failed: xid_79: What / happened; action: reboot; for 12 s\n"
            "GPU 0 (H100, GPU-0) degraded: thermal_throttling: What / happened; action: drain; for 12 s\n");
}

TEST(CheckText, FailOnDecidesWhatDegradedGpusAre) {
  const Report degraded = report({device(0, State::degraded, {kHot}), device(1, State::ok)});
  EXPECT_EQ(check_status(degraded, FailOn::each), CheckStatus::warning);
  EXPECT_EQ(check_status(degraded, FailOn::failed), CheckStatus::ok);
  EXPECT_EQ(check_status(degraded, FailOn::degraded), CheckStatus::critical);
  const Report failed = report({device(0, State::failed, {kXid}), device(1, State::degraded, {kHot})});
  for (const FailOn fail_on : {FailOn::each, FailOn::failed, FailOn::degraded}) {
    EXPECT_EQ(check_status(failed, fail_on), CheckStatus::critical);
  }
}

TEST(CheckText, FindingsOfTheMachineCount) {
  const Finding missing = finding("devices_missing", Severity::failed, Action::reboot);
  const Report lacking = report({device(0, State::ok)}, {missing});
  EXPECT_EQ(text_of(lacking),
            "GPU CRITICAL - machine: devices_missing (reboot) | ok=1 degraded=0 failed=0 unknown=0\n"
            "machine failed: devices_missing: What / happened; action: reboot; for 12 s\n");
  EXPECT_EQ(check_status(report({}, {missing}), FailOn::each), CheckStatus::critical);
}

TEST(CheckText, WhatIsNotReadIsUnknownUnlessSomethingWorseIsKnown) {
  EXPECT_EQ(text_of(report({device(0, State::unknown), device(1, State::ok)})),
            "GPU UNKNOWN - 1 of 2 GPUs unknown: GPU 0 | ok=1 degraded=0 failed=0 unknown=1\n"
            "GPU 0 (H100, GPU-0) unknown: it is not read\n");
  EXPECT_EQ(
      check_status(report({device(0, State::unknown), device(1, State::degraded, {kHot})}), FailOn::each),
      CheckStatus::warning);
  EXPECT_EQ(text_of(report({})), "GPU UNKNOWN - no GPU is known | ok=0 degraded=0 failed=0 unknown=0\n");
}

TEST(CheckText, TheFirstLineNamesSomeGpusOfMany) {
  std::vector<DeviceHealth> devices;
  for (unsigned gpu = 0; gpu < 6; ++gpu) devices.push_back(device(gpu, State::failed, {kXid}));
  const std::string text = text_of(report(devices));
  EXPECT_EQ(text.substr(0, text.find('\n')),
            "GPU CRITICAL - 6 of 6 GPUs failed: GPU 0 xid_79 (reboot), GPU 1 xid_79 (reboot), GPU 2 xid_79 "
            "(reboot), GPU 3 xid_79 (reboot) and 2 more | ok=0 degraded=0 failed=6 unknown=0");
}

}  // namespace
}  // namespace gpumeter
