#include "exporter/web/live_answers.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "tests/fakes/fake_clock.hpp"

namespace gpumeter {
namespace {

class LiveAnswersTest : public testing::Test {
 protected:
  FakeClock clock_;
  Store store_;
  History history_{store_, clock_};
  Topic<health::Report> health_;
  LiveAnswers live_{history_, clock_, health_};
};

TEST_F(LiveAnswersTest, SharesTheBytesUntilTheNextSample) {
  const EncodedText first = live_.live();
  EXPECT_EQ(live_.live().identity, first.identity);
  EXPECT_EQ(live_.live().gzip, first.gzip);
  EXPECT_NE(live_.with_sparklines().identity, first.identity);
  clock_.advance(std::chrono::seconds(1));
  live_.refresh();
  EXPECT_NE(live_.live().identity, first.identity);
}

TEST_F(LiveAnswersTest, RendersOnRequestIfThereWasNoRefresh) {
  const EncodedText first = live_.live();
  clock_.advance(std::chrono::milliseconds(1900));
  EXPECT_EQ(live_.live().identity, first.identity);
  clock_.advance(std::chrono::milliseconds(100));
  EXPECT_NE(live_.live().identity, first.identity);
}

TEST_F(LiveAnswersTest, DropsWhatNobodyAsksFor) {
  const std::weak_ptr<const std::string> bytes = live_.live().identity;
  clock_.advance(std::chrono::milliseconds(4999));
  live_.refresh();
  EXPECT_TRUE(bytes.expired());  // replaced
  const std::weak_ptr<const std::string> current = live_.live().identity;
  clock_.advance(std::chrono::seconds(5));
  live_.refresh();
  EXPECT_TRUE(current.expired());
}

TEST_F(LiveAnswersTest, ManyThreadsAsk) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([this] {
      for (int turn = 0; turn < 200; ++turn) EXPECT_FALSE(live_.live().identity->empty());
    });
  }
  for (int turn = 0; turn < 200; ++turn) {
    history_.sample();
    clock_.advance(std::chrono::milliseconds(500));
    live_.refresh();
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace gpumeter
