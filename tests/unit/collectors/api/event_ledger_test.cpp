#include "collectors/api/event_ledger.hpp"

#include <gtest/gtest.h>

#include <string>

#include "tests/fakes/fake_clock.hpp"

// One event that two sources report counts once; the last events are kept, with ids that rise.

namespace gpumeter {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class EventLedgerTest : public testing::Test {
 protected:
  EventRecord event(std::string source, std::uint64_t code) const {
    return {.time = clock_.realtime(),
            .source = std::move(source),
            .pci_address = "0000:1b:00.0",
            .kind = "xid",
            .code = code,
            .text = source == kKernelLog ? "the line" : ""};
  }
  bool log(std::uint64_t code) { return ledger_.note(event(std::string(kKernelLog), code)); }
  bool driver(std::uint64_t code) { return ledger_.note(event("nvml", code)); }
  /// "kernel 79 x1, nvml 31 x2"
  std::string records(std::uint64_t after = 0) {
    std::string text;
    for (const EventRecord& each : ledger_.after(after)) {
      text += (text.empty() ? "" : ", ") + each.source + " " + std::to_string(each.code.value_or(0)) + " x" +
              std::to_string(each.count);
    }
    return text;
  }
  /// "79: 2" for each code that the lane of the device takes.
  std::string taken(const std::string& address = "0000:1b:00.0") {
    std::string text;
    ledger_.take_xids(address, [&](std::uint64_t code, unsigned, std::uint64_t times, Nanoseconds) {
      text += std::to_string(code) + ": " + std::to_string(times) + "\n";
    });
    return text;
  }

  FakeClock clock_;
  EventLedger ledger_{clock_};
};

TEST_F(EventLedgerTest, TheLogAndTheDriverReportOneEvent) {
  ledger_.set_log_read(true);
  EXPECT_TRUE(driver(79));
  clock_.advance(milliseconds(900));
  EXPECT_FALSE(log(79));
  clock_.advance(seconds(3));
  EXPECT_EQ(records(), "kernel 79 x1");
  EXPECT_EQ(taken(), "") << "the driver's event has counted";
}

TEST_F(EventLedgerTest, TheOrderOfTheSourcesDoesNotMatter) {
  EXPECT_TRUE(log(79));
  clock_.advance(seconds(4));
  EXPECT_FALSE(driver(79));
  EXPECT_EQ(records(), "kernel 79 x1");
  EXPECT_EQ(taken(), "79: 1\n");
  EXPECT_EQ(taken(), "");
}

TEST_F(EventLedgerTest, OfABurstTheSourceWithMoreEventsCounts) {
  EXPECT_TRUE(driver(31));
  EXPECT_TRUE(driver(31));
  EXPECT_FALSE(log(31));
  EXPECT_FALSE(log(31));
  EXPECT_TRUE(log(31));
  EXPECT_FALSE(driver(31));
  EXPECT_TRUE(driver(31));
}

TEST_F(EventLedgerTest, LaterEventsAndOtherCodesAreOthers) {
  EXPECT_TRUE(log(79));
  EXPECT_TRUE(driver(31));
  clock_.advance(seconds(6));
  EXPECT_TRUE(driver(79));
}

TEST_F(EventLedgerTest, ADriversEventWaitsForItsLine) {
  ledger_.set_log_read(true);
  driver(31);
  clock_.advance(milliseconds(1900));
  EXPECT_EQ(records(), "");
  clock_.advance(milliseconds(200));
  EXPECT_EQ(records(), "nvml 31 x1");
}

TEST_F(EventLedgerTest, WithoutTheLogADriversEventIsThereAtOnce) {
  driver(31);
  EXPECT_EQ(records(), "nvml 31 x1");
}

TEST_F(EventLedgerTest, AStormIsOneRecordAMinute) {
  for (int i = 0; i < 10'000; ++i) log(31);
  clock_.advance(seconds(61));
  log(31);
  EXPECT_EQ(records(), "kernel 31 x10000, kernel 31 x1");
  EXPECT_EQ(taken(), "31: 10001\n");
}

TEST_F(EventLedgerTest, KeepsTheLastAndReadersGoOnById) {
  for (std::uint64_t code = 0; code < 70; ++code) {
    log(code);
    clock_.advance(seconds(1));
  }
  const auto all = ledger_.after(0);
  ASSERT_EQ(all.size(), EventLedger::kMost);
  EXPECT_EQ(all.front().code, 6U);
  EXPECT_EQ(records(all[61].id), "kernel 68 x1, kernel 69 x1");
  EXPECT_EQ(ledger_.after(all[61].id, 1).front().code, 68U);
  EXPECT_FALSE(ledger_.has_after(all.back().id));
}

TEST_F(EventLedgerTest, IdsAreTheTimesInMicrosecondsAndRise) {
  log(1);
  log(2);
  const auto all = ledger_.after(0);
  const auto epoch = static_cast<std::uint64_t>(FakeClock::kEpoch / std::chrono::microseconds(1));
  EXPECT_EQ(all[0].id, epoch);
  EXPECT_EQ(all[1].id, epoch + 1);
}

TEST_F(EventLedgerTest, LinesThatAreReadAgainAreShownOnce) {
  const EventRecord old = event(std::string(kKernelLog), 79);
  clock_.advance(seconds(10));
  ledger_.show(old);
  ledger_.show(old);
  EXPECT_EQ(records(), "kernel 79 x1");
  log(31);
  ledger_.show(old);
  EXPECT_EQ(records(), "kernel 79 x1, kernel 31 x1");
  EXPECT_EQ(taken(), "31: 1\n");
}

TEST_F(EventLedgerTest, TextsAreBoundedAndOtherDevicesKeepTheirXids) {
  EventRecord long_one = event(std::string(kKernelLog), 31);
  long_one.text = std::string(100'000, 'a');
  ledger_.note(long_one);
  EXPECT_EQ(ledger_.after(0).front().text.size(), EventLedger::kLongestText);
  EXPECT_EQ(taken("0000:43:00.0"), "");
  EXPECT_EQ(taken(), "31: 1\n");
}

}  // namespace
}  // namespace gpumeter
