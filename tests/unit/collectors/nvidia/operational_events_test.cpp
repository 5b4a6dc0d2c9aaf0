#include "collectors/nvidia/operational_events.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "collectors/api/event_ledger.hpp"
#include "collectors/nvidia/events.hpp"
#include "collectors/nvidia/nvml/constants.hpp"
#include "tests/fakes/fake_clock.hpp"
#include "tests/fakes/nvidia_gpu.hpp"

namespace gpumeter::nvidia {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;

TEST(OperationalCounts, ThatTwoSourcesReportIsOneOccurrence) {
  OperationalCounts counts;
  const auto bit = [&](std::uint64_t xid, int at) {
    return counts.is_first_report(xid, XidSource::event_bit, seconds(at));
  };
  const auto record = [&](std::uint64_t xid, int at) {
    return counts.is_first_report(xid, XidSource::operational_event, seconds(at));
  };
  EXPECT_TRUE(bit(119, 100));
  EXPECT_FALSE(record(119, 105));
  EXPECT_TRUE(record(119, 105));  // a second occurrence, which the bit has not reported
  EXPECT_FALSE(bit(119, 106));
  EXPECT_TRUE(record(120, 106));
  EXPECT_TRUE(bit(119, 106));  // another code
  EXPECT_TRUE(bit(120, 112));  // too late: another occurrence
}

TEST(OperationalCounts, OfAStormAreMatchedOneByOne) {
  OperationalCounts counts;
  int news = 0;
  for (int i = 0; i < 1000; ++i) news += counts.is_first_report(31, XidSource::event_bit, seconds(9)) ? 1 : 0;
  for (int i = 0; i < 1000; ++i)
    news += counts.is_first_report(31, XidSource::operational_event, seconds(10)) ? 1 : 0;
  EXPECT_EQ(news, 1000);
}

TEST(OperationalCounts, HaveKindsUpToALimit) {
  OperationalCounts counts;
  for (int i = 0; i < 100; ++i) counts.count({"M", std::to_string(i), "fatal"});
  counts.count({"M", "200", "corrected"});
  counts.count({"M", "0", "fatal"});
  const std::vector<OperationalKind> kinds = counts.kinds();
  ASSERT_EQ(kinds.size(), OperationalCounts::kMostKinds + 2);
  EXPECT_EQ(kinds[63], (OperationalKind{"M", "63", "fatal"}));
  EXPECT_EQ(kinds[64], (OperationalKind{"other", "other", "fatal"}));
  EXPECT_EQ(kinds[65], (OperationalKind{"other", "other", "corrected"}));
}

/// Two GPUs as the event thread and their lanes use them.
class OperationalEvents : public testing::Test {
 protected:
  void play(const std::string& scenario) {
    driver_.emplace(scenario);
    open();
  }
  void open() {
    gpu_.emplace(*driver_);
    gpu_->attach(0);
  }
  std::vector<std::string> reported(double at) {
    driver_->set_time(at);
    const auto session = *NvmlSession::shared(driver_->library());
    EventListener::Outcome now = session->listener().wait(milliseconds(1), clock_);
    session->operational().take(clock_, now.events);
    std::vector<std::string> kinds;
    for (const DeviceEvent& event : now.events) kinds.push_back(event.uuid + " " + event.kind);
    return kinds;
  }
  /// Series of events that are not 0, after the lane has attached again for new ones.
  std::string counted(int at) {
    gpu_->run_and_bind(at, at);
    std::istringstream in(gpu_->lines({"gpu_xid_errors", "gpu_operational"}));
    std::string kept;
    for (std::string line; std::getline(in, line);) kept += line.ends_with(" 0") ? "" : line + "\n";
    return kept;
  }

  FakeClock clock_;
  std::optional<FakeDriver> driver_;
  std::optional<NvidiaGpu> gpu_;
};

TEST_F(OperationalEvents, AreCountedByModuleCodeAndSeverity) {
  play(R"(
devices: [{uuid: GPU-0, operational_events: yes}]
events:
  - {at: 1.0, device: 0, type: operational, module: GPU-NVLINK, code: 2, severity: 20}
  - {at: 1.1, device: 0, type: operational, module: GPU-NVLINK, code: 2, severity: 20, attributes: 64}
  - {at: 1.2, device: 0, type: operational, module: GPU-RAS, code: 0x3D, severity: 40}
  - {at: 1.3, device: 0, type: operational, module: SIXTEEN-LETTERS!, code: 70000, severity: 35}
  - {at: 1.4, device: 0, type: operational, code: 1, severity: 40, log_level: 20}
  - {at: 1.5, device: 0, type: operational, code: 1, severity: 10, log_level: 50}
)");
  EXPECT_THAT(reported(0), ElementsAre());
  EXPECT_EQ(counted(0), "");
  EXPECT_NE(gpu_->lines({"gpu_operational_event_overflows_total 0"}), "");
  EXPECT_THAT(reported(2), ElementsAre("GPU-0 operational event GPU-NVLINK 0x0002, corrected",
                                       "GPU-0 operational event GPU-NVLINK 0x0002, corrected",
                                       "GPU-0 operational event GPU-RAS 0x003d, fatal",
                                       "GPU-0 operational event SIXTEEN-LETTERS! 0x11170, other",
                                       "GPU-0 operational event other 0x0001, informational"));
  EXPECT_EQ(
      counted(2),
      "gpu_operational_event_overflows_total 1\n"
      "gpu_operational_events_total{module=\"GPU-NVLINK\",code=\"0x0002\",severity=\"corrected\"} 2\n"
      "gpu_operational_events_total{module=\"GPU-RAS\",code=\"0x003d\",severity=\"fatal\"} 1\n"
      "gpu_operational_events_total{module=\"SIXTEEN-LETTERS!\",code=\"0x11170\",severity=\"other\"} 1\n"
      "gpu_operational_events_total{module=\"other\",code=\"0x0001\",severity=\"informational\"} 1\n");
  EXPECT_EQ(driver_->violations(), "");
}

TEST_F(OperationalEvents, AndXidsAreOneOccurrence) {
  play(R"(
devices: [{uuid: GPU-0, supported_events: [xid], operational_events: yes}]
events:
  - {at: 1, device: 0, type: xid, data: 119}
  - {at: 1.1, device: 0, type: operational, module: GPU-GSP, code: 1, severity: 40, contexts: [0, 119]}
  - {at: 3, device: 0, type: operational, module: GPU-BUS, code: 3, severity: 40, contexts: [79]}
  - {at: 5, device: 0, type: xid, data: 79}
)");
  reported(0);
  EXPECT_THAT(reported(2),
              ElementsAre("GPU-0 xid 119", "GPU-0 operational event GPU-GSP 0x0001, fatal, of xid 119"));
  EXPECT_THAT(reported(4), ElementsAre("GPU-0 xid 79",  // the driver has sent no bit
                                       "GPU-0 operational event GPU-BUS 0x0003, fatal, of xid 79"));
  clock_.advance(seconds(2));
  EXPECT_THAT(reported(6), ElementsAre());  // the bit, late
  EXPECT_EQ(counted(6),
            "gpu_operational_events_total{module=\"GPU-BUS\",code=\"0x0003\",severity=\"fatal\"} 1\n"
            "gpu_operational_events_total{module=\"GPU-GSP\",code=\"0x0001\",severity=\"fatal\"} 1\n"
            "gpu_xid_errors_total{xid=\"119\"} 1\n"
            "gpu_xid_errors_total{xid=\"79\"} 1\n");
}

TEST_F(OperationalEvents, OfATestAreNoFault) {
  play(R"(
devices: [{uuid: GPU-0, supported_events: [xid], operational_events: yes}]
events: [{at: 1, device: 0, type: operational, module: GPU-GSP, code: 1, severity: 40, group_attributes: 6, contexts: [119]}]
)");
  reported(0);
  EXPECT_THAT(reported(2), ElementsAre("GPU-0 operational event GPU-GSP 0x0001, simulated, of xid 119"));
  EXPECT_EQ(counted(2),
            "gpu_operational_events_total{module=\"GPU-GSP\",code=\"0x0001\",severity=\"simulated\"} 1\n");
}

TEST_F(OperationalEvents, WithoutThePermissionAreSkippedWithOneLine) {
  play(R"(
devices:
  - {uuid: GPU-0, supported_events: [xid], operational_events: {error: no_permission}}
  - {uuid: GPU-1, supported_events: [xid], operational_events: {error: no_permission}}
events: [{at: 1, device: 0, type: xid, data: 79}]
)");
  NvidiaGpu other(*driver_, "GPU-1");
  other.attach(0);
  EXPECT_THAT(
      reported(0),
      ElementsAre("GPU-0 that operational events require CAP_SYS_ADMIN, so they are not read; XIDs are"));
  clock_.advance(seconds(60));
  EXPECT_THAT(reported(2), ElementsAre("GPU-0 xid 79"));
  EXPECT_EQ(driver_->calls("nvmlEventSetRegisterGpuOperationalEvents_v1"), 2U);
  EXPECT_EQ(driver_->calls("nvmlEventSetWait_v3"), 0U);
  EXPECT_EQ(driver_->open().event_sets, 1U);  // of the XIDs
  EXPECT_EQ(counted(2), "gpu_xid_errors_total{xid=\"79\"} 1\n");
  EXPECT_EQ(gpu_->lines({"gpu_operational"}), "");
}

TEST_F(OperationalEvents, OfAnOlderLibraryAreNotAskedFor) {
  driver_.emplace(
      R"(
devices: [{uuid: GPU-0, supported_events: [xid]}]
events: [{at: 1, device: 0, type: xid, data: 79}]
)",
      std::vector<std::string>{"nvmlEventSetRegisterGpuOperationalEvents_v1", "nvmlEventSetWait_v3"});
  open();
  EXPECT_THAT(reported(0), ElementsAre());
  EXPECT_THAT(reported(2), ElementsAre("GPU-0 xid 79"));
  EXPECT_EQ(driver_->open().event_sets, 1U);
  EXPECT_EQ(gpu_->lines({"gpu_operational"}), "");
}

TEST_F(OperationalEvents, AWaitThatFailsCostsNoXid) {
  play(R"(
errors: {nvmlEventSetWait_v3: {steps: [[0, ok], [5, {error: unknown}], [10, ok]]}}
devices: [{uuid: GPU-0, supported_events: [xid], operational_events: yes}]
events:
  - {at: 2, device: 0, type: operational, module: GPU-FSP, code: 1, severity: 30}
  - {at: 6, device: 0, type: xid, data: 31}
  - {at: 12, device: 0, type: operational, module: GPU-FSP, code: 1, severity: 30}
)");
  const std::string event = "GPU-0 operational event GPU-FSP 0x0001, recoverable";
  reported(0);
  EXPECT_THAT(reported(3), ElementsAre(event));
  EXPECT_NE(counted(3), "");
  EXPECT_THAT(reported(5), ElementsAre());
  EXPECT_THAT(reported(7), ElementsAre("GPU-0 xid 31"));
  EXPECT_EQ(counted(7), "gpu_xid_errors_total{xid=\"31\"} 1\n");  // unknown is not 0 and not the old count
  clock_.advance(seconds(6));
  EXPECT_THAT(reported(11), ElementsAre());  // registers again
  EXPECT_THAT(reported(13), ElementsAre(event));
  EXPECT_EQ(counted(13),
            "gpu_operational_events_total{module=\"GPU-FSP\",code=\"0x0001\",severity=\"recoverable\"} 2\n"
            "gpu_xid_errors_total{xid=\"31\"} 1\n");
  EXPECT_EQ(driver_->violations(), "");
}

TEST_F(OperationalEvents, AreOneOccurrenceWithALineOfTheKernelsLog) {
  driver_.emplace(R"(
devices: [{uuid: GPU-0, operational_events: yes}]
events:
  - {at: 1, device: 0, type: operational, module: GPU-GSP, code: 1, severity: 40, contexts: [119]}
  - {at: 2, device: 0, type: operational, module: GPU-NVLINK, code: 2, severity: 20}
)");
  const auto session = *NvmlSession::shared(driver_->library());
  const auto ledger = std::make_shared<EventLedger>(clock_);
  const auto events = std::make_shared<DeviceEvents>();
  const std::string address = "0000:1b:00.0";
  ledger->note({.time = clock_.realtime(),
                .source = std::string(kKernelLog),
                .pci_address = address,
                .kind = "xid",
                .code = 119});
  session->operational().listen("GPU-0", events, {address, ledger});
  std::vector<DeviceEvent> reported;
  driver_->set_time(0);
  session->operational().take(clock_, reported);
  driver_->set_time(3);
  session->operational().take(clock_, reported);
  EXPECT_EQ(events->xids(xid_place(119)), 0U);  // the ledger's count is the log's
  EXPECT_EQ(events->operational().size(), 2U);
  const std::vector<EventRecord> shown = ledger->after(0);
  ASSERT_EQ(shown.size(), 2U);
  EXPECT_EQ(shown[0].kind, "xid");
  EXPECT_EQ(shown[1].kind, "operational_event");
  EXPECT_EQ(shown[1].text, "GPU-NVLINK 0x0002, corrected");
}

TEST_F(OperationalEvents, SurviveALossOfTheGpu) {
  play(R"(
devices: [{uuid: GPU-0, power: {draw: 1 W}, operational_events: yes, lost: {from: 5, until: 12}}]
events:
  - {at: 4, device: 0, type: operational, module: GPU-BUS, code: 3, severity: 40}
  - {at: 14, device: 0, type: operational, module: GPU-BUS, code: 3, severity: 40}
)");
  reported(0);
  reported(4.5);
  gpu_->run(5, 6);
  gpu_->attach(12);
  reported(12);
  reported(15);
  EXPECT_EQ(counted(15),
            "gpu_operational_events_total{module=\"GPU-BUS\",code=\"0x0003\",severity=\"fatal\"} 2\n");
  gpu_->page().release();
  EXPECT_EQ(driver_->opened(), FakeDriver::kNothing);
  EXPECT_EQ(driver_->violations(), "");
}

}  // namespace
}  // namespace gpumeter::nvidia
