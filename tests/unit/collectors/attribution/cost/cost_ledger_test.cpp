#include "collectors/attribution/cost/cost_ledger.hpp"

#include <gtest/gtest.h>

#include "tests/fakes/fake_clock.hpp"

namespace gpumeter::workloads {
namespace {

using namespace std::chrono_literals;

const WorkloadId kJob{cgroup::Kind::slurm_job, "4711"};

class CostLedgerTest : public testing::Test {
 protected:
  CostLedgerTest() { clock_.advance(1h); }

  AccountEntry entry(const WorkloadId& id, double joules, bool is_present = true) {
    AccountEntry made;
    made.id = id;
    made.cost.uuid = "GPU-1";
    made.cost.joules = joules;
    made.cost.held_seconds = 60;
    made.energy_joules = joules;
    made.idle_joules = joules / 4;
    made.is_present = is_present;
    made.part = is_present ? 1 : 0;
    made.begun = 30min;
    made.seen = is_present ? clock_.monotonic() : seen_;
    if (is_present) seen_ = clock_.monotonic();
    return made;
  }
  void publish(std::vector<AccountEntry> entries, CostLedger* ledger = nullptr) {
    auto account = std::make_shared<DeviceAccount>();
    account->uuid = "GPU-1";
    account->energy_total = 1000;
    account->entries = std::move(entries);
    (ledger == nullptr ? ledger_ : *ledger).publish(std::move(account));
  }
  WorkloadCost only() {
    const std::vector<WorkloadCost> all = ledger_.workloads();
    EXPECT_EQ(all.size(), 1U);
    return all.empty() ? WorkloadCost() : all.front();
  }

  FakeClock clock_;
  WorkloadBook book_;
  Nanoseconds seen_{};
  CostLedger ledger_{clock_};
};

TEST_F(CostLedgerTest, AJobRunsEndsAndLeavesAfterADay) {
  publish({entry(unattributed(), 5), entry(kJob, 100)});
  ledger_.describe({{kJob, {{"user", "alice"}}}});
  EXPECT_FALSE(only().has_ended);
  EXPECT_EQ(only().workload, "4711");
  EXPECT_EQ(only().begun, FakeClock::kEpoch + 30min);
  EXPECT_EQ(only().labels, (std::vector<Label>{{"user", "alice"}}));
  clock_.advance(1s);
  publish({entry(kJob, 110, false)});
  EXPECT_TRUE(only().has_ended) << "at once, not after its series have left the page";
  EXPECT_EQ(only().seen, FakeClock::kEpoch + 1h);
  EXPECT_EQ(only().devices.front().joules, 110);
  clock_.advance(12min);
  publish({entry(unattributed(), 5)});
  ledger_.describe({});
  EXPECT_EQ(only().labels, (std::vector<Label>{{"user", "alice"}})) << "the labels of then";
  clock_.advance(24h);
  EXPECT_TRUE(ledger_.workloads().empty());
}

TEST_F(CostLedgerTest, AWorkloadThatReturnsAfterItWasForgottenIsAnother) {
  publish({entry(kJob, 100)});
  publish({});
  AccountEntry again = entry(kJob, 1);
  again.begun = clock_.monotonic();
  publish({again});
  const std::vector<WorkloadCost> all = ledger_.workloads();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_FALSE(all[0].has_ended);
  EXPECT_EQ(all[0].devices.front().joules, 1);
  EXPECT_TRUE(all[1].has_ended);
  EXPECT_EQ(all[1].devices.front().joules, 100);
}

TEST_F(CostLedgerTest, TheOldestOfTooManyLeave) {
  for (std::size_t i = 0; i < CostLedger::kMostEnded + 10; ++i) {
    AccountEntry next = entry(kJob, static_cast<double>(i));
    next.begun = std::chrono::seconds(i);  // each time another workload of this name
    publish({next});
    clock_.advance(1s);
  }
  const std::vector<WorkloadCost> all = ledger_.workloads();
  EXPECT_EQ(all.size(), CostLedger::kMostEnded + 1) << "and the open one";
  EXPECT_EQ(all.back().devices.front().joules, 9);
}

TEST_F(CostLedgerTest, ARestartedDaemonContinues) {
  publish({entry(unattributed(), 5), entry(kJob, 100)});
  ledger_.describe({{kJob, {{"user", "alice"}}}});
  const std::vector<WorkloadCost> before = ledger_.workloads();
  const std::string saved = ledger_.save(book_);
  clock_.advance(5s);
  CostLedger next(clock_);
  ASSERT_TRUE(next.load(saved, clock_.realtime() - 5s, true));
  EXPECT_EQ(next.workloads().front().devices, before.front().devices);
  EXPECT_EQ(next.workloads().front().labels, before.front().labels);
  const auto account = next.take_earlier("GPU-1", false);
  ASSERT_TRUE(account);
  EXPECT_EQ(account->energy_total, 1000);
  ASSERT_EQ(account->entries.size(), 2U);
  EXPECT_EQ(account->entries[1].energy_joules, 100);
  EXPECT_EQ(account->entries[1].idle_joules, 25);
  EXPECT_EQ(account->entries[1].part, 1) << "the energy of a short restart is the job's";
  EXPECT_FALSE(next.take_earlier("GPU-1", false)) << "only once";
  publish({entry(kJob, 150)}, &next);
  ASSERT_EQ(next.workloads().size(), 1U) << "it is the same workload";
  EXPECT_EQ(next.workloads().front().begun, before.front().begun);
}

TEST_F(CostLedgerTest, TheEnergyOfALongRestartIsUnattributed) {
  publish({entry(unattributed(), 5), entry(kJob, 100)});
  const std::string saved = ledger_.save(book_);
  CostLedger next(clock_);
  ASSERT_TRUE(next.load(saved, clock_.realtime() - 2min, true));
  const auto account = next.take_earlier("GPU-1", false);
  ASSERT_TRUE(account);
  EXPECT_EQ(account->entries[0].part, 1);
  EXPECT_EQ(account->entries[1].part, 0);
}

TEST_F(CostLedgerTest, AfterABootWorkloadsHaveEndedAndHardwareCountersAreNotContinued) {
  publish({entry(unattributed(), 5), entry(kJob, 100)});
  const std::string saved = ledger_.save(book_);
  for (const bool counts_own_energy : {false, true}) {
    CostLedger next(clock_);
    ASSERT_TRUE(next.load(saved, clock_.realtime(), false));
    ASSERT_EQ(next.workloads().size(), 1U);
    EXPECT_TRUE(next.workloads().front().has_ended);
    const auto account = next.take_earlier("GPU-1", counts_own_energy);
    EXPECT_EQ(account.has_value(), counts_own_energy);
    EXPECT_EQ(account ? account->entries.size() : 1, 1U) << "only unattributed";
  }
}

TEST_F(CostLedgerTest, AnEntryOfAnEarlierVersionHasNoIdleEnergy) {
  const char* const section = "account\tG\t0\t5\nentry\tslurm_job\t1\t3\t-\t1\t1\t0\t0\n";
  ASSERT_TRUE(ledger_.load(section, clock_.realtime(), true));
  const auto account = ledger_.take_earlier("G", true);
  ASSERT_TRUE(account && account->entries.size() == 1);
  EXPECT_EQ(account->entries[0].energy_joules, 3);
  EXPECT_EQ(account->entries[0].idle_joules, 0);
}

TEST_F(CostLedgerTest, AMalformedLineRejectsTheSection) {
  publish({entry(kJob, 100)});
  for (const char* text :
       {"cost\tG\t0\t1\t1\t-\t-\t-\n", "entry\tslurm_job\t1\t1\t-\t1\t1\t0\t0\n", "account\tG\t0\t-1\n",
        "open\tnone\t1\t0\t0\n", "ended\tslurm_job\t1\t0\n", "open\tpod\tp\t0\t0\tname\n", "other\n"}) {
    EXPECT_FALSE(ledger_.load(text, clock_.realtime(), true)) << text;
    EXPECT_EQ(ledger_.workloads().size(), 1U) << "the ledger is unchanged";
  }
}

}  // namespace
}  // namespace gpumeter::workloads
