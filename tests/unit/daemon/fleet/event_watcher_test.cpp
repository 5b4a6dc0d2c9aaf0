#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "daemon/fleet/collector_host.hpp"
#include "tests/fakes/fake_clock.hpp"

namespace gpumeter {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;

/// A driver that reports the events that a test adds, one batch for each wait.
class TellingCollector final : public Collector, public WatchesEvents {
 public:
  Result<Discovery> discover() override { return Discovery{}; }
  std::unique_ptr<Device> device(const DeviceInfo&) override { return nullptr; }

  std::vector<DeviceEvent> wait_for_events(Nanoseconds) override {
    MutexLock lock(mutex_);
    ++waits_;
    if (batches_.empty()) changed_.wait_for(mutex_, 1ms);
    if (batches_.empty()) return {};
    std::vector<DeviceEvent> batch = std::move(batches_.front());
    batches_.erase(batches_.begin());
    return batch;
  }

  /// Returns when the batch was reported, that is, when the thread waits again.
  void report(std::vector<DeviceEvent> batch) {
    const int before = add(std::move(batch));
    while (waits() < before + 3) std::this_thread::yield();
  }
  int waits() {
    MutexLock lock(mutex_);
    return waits_;
  }

 private:
  int add(std::vector<DeviceEvent> batch) {
    MutexLock lock(mutex_);
    batches_.push_back(std::move(batch));
    changed_.notify_all();
    return waits_;
  }

  Mutex mutex_;
  Condition changed_;
  std::vector<std::vector<DeviceEvent>> batches_ GPUMETER_GUARDED_BY(mutex_);
  int waits_ GPUMETER_GUARDED_BY(mutex_) = 0;
};

class Watcher : public testing::Test {
 protected:
  void SetUp() override {
    EXPECT_TRUE(watcher_->start("reporting"));
    watcher_->watch(collector_);
  }
  void TearDown() override {
    watcher_->request_stop();
    EXPECT_TRUE(watcher_->join(clock_.monotonic() + 60s));
    EXPECT_TRUE(watcher_->is_idle());
  }
  std::vector<std::string> logged() {
    MutexLock lock(mutex_);
    return std::exchange(told_, {});
  }

  FakeClock clock_;
  Mutex mutex_;
  std::vector<std::string> told_ GPUMETER_GUARDED_BY(mutex_);
  std::shared_ptr<TellingCollector> collector_ = std::make_shared<TellingCollector>();
  std::shared_ptr<EventWatcher> watcher_ =
      std::make_shared<EventWatcher>(clock_, [this](const DeviceEvent& event) {
        MutexLock lock(mutex_);
        told_.push_back(event.uuid + " " + event.kind);
      });
};

TEST_F(Watcher, TellsAKindOfADeviceOnceAMinute) {
  collector_->report({{"A", "xid 79"}, {"A", "xid 79"}, {"A", "xid 31"}, {"B", "xid 79"}});
  EXPECT_THAT(logged(), ElementsAre("A xid 79", "A xid 31", "B xid 79"));
  clock_.advance(59s);
  collector_->report({{"A", "xid 79"}, {"B", "xid 31"}});
  EXPECT_THAT(logged(), ElementsAre("B xid 31"));
  clock_.advance(1s);
  collector_->report({{"A", "xid 79"}, {"A", "xid 79"}, {"B", "xid 31"}});
  EXPECT_THAT(logged(), ElementsAre("A xid 79"));
}

TEST_F(Watcher, AStormIsToldOnce) {
  for (int i = 0; i < 10; ++i) collector_->report(std::vector<DeviceEvent>(1000, {"A", "xid 31"}));
  EXPECT_THAT(logged(), ElementsAre("A xid 31"));
}

TEST_F(Watcher, LetsGoOfACollectorThatIsNotWatchedAnyMore) {
  EXPECT_FALSE(watcher_->is_idle());
  watcher_->watch(nullptr);
  while (!watcher_->is_idle()) std::this_thread::yield();
  while (collector_.use_count() > 1) std::this_thread::yield();
  const int waits = collector_->waits();
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(collector_->waits(), waits);
}

TEST_F(Watcher, GoesOnWithAnotherCollector) {
  watcher_->watch(nullptr);
  while (!watcher_->is_idle()) std::this_thread::yield();
  const auto another = std::make_shared<TellingCollector>();
  watcher_->watch(another);
  another->report({{"A", "xid 79"}});
  EXPECT_THAT(logged(), ElementsAre("A xid 79"));
}

TEST_F(Watcher, AStopEndsItWhileItWatches) {
  collector_->report({{"A", "xid 79"}});
  watcher_->request_stop();
  EXPECT_TRUE(watcher_->join(clock_.monotonic() + 60s));
  EXPECT_TRUE(watcher_->is_idle());
  EXPECT_EQ(collector_.use_count(), 1);
}

}  // namespace
}  // namespace gpumeter
