#include "base/bounded_calls.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>

namespace gpumeter {
namespace {

using namespace std::chrono_literals;
using Keys = std::vector<std::string>;

/// Calls of this key hang while the door is closed.
struct Door {
  std::string key;
  std::atomic<bool> closed{true};
  std::atomic<int> calls{0};
  std::atomic<int> inside{0};

  std::size_t length_of(const std::string& asked) {
    if (asked != key) return asked.size();
    ++calls;
    ++inside;
    while (closed) std::this_thread::sleep_for(1ms);
    --inside;
    return asked.size();
  }
  void open_and_wait() {
    closed = false;
    while (inside > 0) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(20ms);  // until the thread has reported
  }
};

class BoundedCallsTest : public ::testing::Test {
 protected:
  BoundedCalls::Answers<std::size_t> ask(const Keys& keys) {
    return calls_.ask<std::size_t>(keys,
                                   [door = door_](const std::string& key) { return door->length_of(key); });
  }

  SystemClock clock_;
  BoundedCalls calls_{"calls", 50ms, clock_};
  std::shared_ptr<Door> door_ = std::make_shared<Door>();
};

TEST_F(BoundedCallsTest, AnswersForAllKeysComeBack) {
  const auto answers = ask({"a", "bb", "ccc"});
  EXPECT_EQ(answers.values, (std::map<std::string, std::size_t>{{"a", 1}, {"bb", 2}, {"ccc", 3}}));
  EXPECT_TRUE(answers.silent.empty());
}

TEST_F(BoundedCallsTest, NoKeysAreNoCalls) { EXPECT_TRUE(ask({}).values.empty()); }

TEST_F(BoundedCallsTest, ACallThatHangsHasNoAnswerAndTheOthersHave) {
  door_->key = "bb";
  const auto answers = ask({"a", "bb", "ccc", "dddd"});
  EXPECT_EQ(answers.values, (std::map<std::string, std::size_t>{{"a", 1}, {"ccc", 3}, {"dddd", 4}}));
  EXPECT_EQ(answers.silent, Keys{"bb"});
  door_->open_and_wait();
}

TEST_F(BoundedCallsTest, AKeyIsNotCalledAgainUntilItsCallReturns) {
  door_->key = "bb";
  for (int i = 0; i < 5; ++i) EXPECT_EQ(ask({"a", "bb"}).silent, Keys{"bb"});
  EXPECT_EQ(door_->calls, 1);
  door_->open_and_wait();
  EXPECT_TRUE(ask({"a", "bb"}).silent.empty());
  EXPECT_EQ(door_->calls, 2);
}

TEST_F(BoundedCallsTest, ACallLeftBehindMayOutliveItsAsker) {
  door_->key = "bb";
  {
    BoundedCalls calls("calls", 10ms, clock_);
    calls.ask<std::size_t>({"bb"}, [door = door_](const std::string& key) { return door->length_of(key); });
  }
  door_->open_and_wait();
}

TEST_F(BoundedCallsTest, TheNextObjectDoesNotCallAKeyThatHangsSinceTheLastOne) {
  door_->key = "bb";
  const auto hanging = std::make_shared<HangingCalls>();
  const auto silent_in = [&](const char* scope) {
    BoundedCalls calls("calls", 100ms, clock_, hanging, scope);
    return calls
        .ask<std::size_t>({"a", "bb"},
                          [door = door_](const std::string& key) { return door->length_of(key); })
        .silent;
  };
  for (int i = 0; i < 3; ++i) EXPECT_EQ(silent_in("one"), Keys{"bb"});
  EXPECT_EQ(door_->calls, 1);
  EXPECT_EQ(silent_in("other"), Keys{"bb"});  // the same key of another kind of call
  EXPECT_EQ(door_->calls, 2);
  door_->open_and_wait();
  EXPECT_TRUE(silent_in("one").empty());
}

TEST_F(BoundedCallsTest, ACallThatThrowsHasNoAnswer) {
  const auto answers = calls_.ask<int>({"a", "b"}, [](const std::string& key) {
    if (key == "a") throw std::runtime_error("no");
    return 1;
  });
  EXPECT_EQ(answers.silent, Keys{"a"});
  EXPECT_EQ(answers.values, (std::map<std::string, int>{{"b", 1}}));
}

}  // namespace
}  // namespace gpumeter
