#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "daemon/bus/bus.hpp"
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
      tree_.path(), clock_,
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

TEST_F(BusWatcherTest, IsEmptyWhereItIsNotWanted) {
  watcher_->want(false);
  start();
  EXPECT_TRUE(seen().addresses.empty());
}

}  // namespace
}  // namespace gpumeter
