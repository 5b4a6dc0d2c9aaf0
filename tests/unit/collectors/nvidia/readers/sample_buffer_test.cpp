#include "collectors/nvidia/readers/sample_buffer.hpp"

#include <gtest/gtest.h>

#include "tests/fakes/nvidia_gpu.hpp"

namespace gpumeter::nvidia {
namespace {

constexpr double kTiny = 1e-6;  // error of sums of several hundred doubles

class Buffer : public testing::Test {
 protected:
  /// Plays a buffer of power whose samples are 20 ms apart.
  void play(const std::string& value, const std::string& more = "") {
    driver_.emplace("devices: [{uuid: GPU-0, samples: {power: {period_ms: 20, capacity: 120, value: " +
                    value + more + "}}}]");
    driver_->set_time(0);
    gpu_ = *find_gpu(*NvmlSession::shared(driver_->library()), "GPU-0");
    ASSERT_EQ(buffer_.open(gpu_), ReadStatus::ok);
  }

  bool drain(double at, double elapsed) {
    driver_->set_time(at);
    const auto time = [](double seconds) {
      return std::chrono::round<Nanoseconds>(std::chrono::duration<double>(seconds));
    };
    if (pass_ > 0) buffer_.settle(is_observed_);
    return buffer_.drain(gpu_, {++pass_, time(at), time(elapsed)});
  }
  /// Runs a pass a second up to `until`. If the buffer is dry, a plain reading of 300 replaces it.
  void run(int from, int until) {
    for (int at = from; at <= until; ++at) {
      if (!drain(at, at == from ? 0 : 1)) buffer_.stand_in(Sample::of(300));
    }
  }

  std::optional<FakeDriver> driver_;
  NvmlCaller gpu_;
  SampleBuffer buffer_{nvml::kPowerSamples};
  std::uint64_t pass_ = 0;
  bool is_observed_ = true;  // for the previous pass
};

TEST_F(Buffer, IntegratesASquareWaveExactlyOverPassesOfASecond) {
  play("{square: {period: 2, duty: 0.37, high: 700, low: 100}}");
  run(1, 11);
  EXPECT_NEAR(buffer_.total().value, 5 * (0.74 * 700 + 1.26 * 100), kTiny);
}

TEST_F(Buffer, ExtremesAreOfSamplesAndNotOfMeans) {
  play("{square: {period: 2, duty: 0.01, high: 900, low: 100}}");  // 20 ms of every 2 s
  run(1, 4);
  EXPECT_EQ(buffer_.max().value, 900);
  EXPECT_EQ(buffer_.min().value, 100);
}

TEST_F(Buffer, CountsNoSampleTwice) {
  play("500");
  drain(1, 0);
  EXPECT_TRUE(drain(1.3, 0.3));
  EXPECT_FALSE(drain(1.305, 0.005));  // no new sample
  EXPECT_TRUE(drain(2, 0.695));
  EXPECT_NEAR(buffer_.total().value, 500, kTiny);
}

TEST_F(Buffer, DoesNotCountWhatIsOlderThanTheFirstPass) {
  play("500");
  EXPECT_TRUE(drain(100, 0));
  EXPECT_EQ(buffer_.total().value, 0);
  EXPECT_EQ(buffer_.max().value, 500);
}

TEST_F(Buffer, AGapIsNotCounted) {
  play("500");
  run(1, 3);
  drain(50, 0);
  drain(51, 1);
  EXPECT_NEAR(buffer_.total().value, 3 * 500, kTiny);
}

TEST_F(Buffer, APassThatIsNotObservedIsCountedByTheNext) {
  play("500");
  run(1, 3);
  is_observed_ = true;
  drain(4, 1);
  is_observed_ = false;
  drain(5, 2);
  EXPECT_NEAR(buffer_.total().value, 4 * 500, kTiny);
}

TEST_F(Buffer, APassThatWasObservedWithoutItIsItsOwnGap) {
  play("500", ", dry: [[3, 6]]");
  run(1, 3);
  for (int at = 4; at <= 5; ++at) {
    ASSERT_FALSE(drain(at, 1));
    buffer_.stand_in(Sample::miss(ReadStatus::denied));
  }
  drain(6, 1);
  EXPECT_NEAR(buffer_.total().value, 1.98 * 500 + 500, kTiny);
}

TEST_F(Buffer, WhereItIsDryAPlainReadingStandsIn) {
  play("500", ", dry: [[3, 6]]");
  run(1, 6);  // samples up to 2.98 s, two plain readings, and the sample of 6 s for the rest since 5 s
  EXPECT_NEAR(buffer_.total().value, 1.98 * 500 + 2 * 300 + 1.02 * 500, kTiny);
}

TEST_F(Buffer, ATimeThatAReadingStoodForIsNotCountedAgain) {
  play("500", ", dry: [[3, 5.5]]");
  run(1, 10);
  EXPECT_NEAR(buffer_.total().value, 1.98 * 500 + 2 * 300 + 5.02 * 500, kTiny);
}

TEST_F(Buffer, OneThatIsDryFromTheStartBeginsWithoutAHole) {
  play("500", ", dry: [[0, 5]]");
  run(1, 7);
  EXPECT_NEAR(buffer_.total().value, 3 * 300 + 3 * 500, kTiny);
}

TEST_F(Buffer, ASampleStandsForNoMoreThanASecondAndAHalf) {
  play("500", ", dry: [[3, 10]]");
  for (int at = 1; at <= 10; ++at) {
    is_observed_ = buffer_.total().status == ReadStatus::ok;
    if (!drain(at, at == 1 ? 0 : 1)) buffer_.stand_in(Sample::miss(ReadStatus::denied));
    EXPECT_EQ(buffer_.total().status, at > 3 && at < 10 ? ReadStatus::denied : ReadStatus::ok);
  }
  EXPECT_NEAR(buffer_.total().value, 1.98 * 500 + 1.5 * 500, kTiny);
}

TEST_F(Buffer, ABufferThatTheGpuLacksDoesNotOpen) {
  play("500");
  EXPECT_EQ(SampleBuffer(nvml::kGpuSamples).open(gpu_), ReadStatus::unsupported);
}

TEST_F(Buffer, IsDueOnceAPass) {
  play("500");
  drain(1, 0);
  EXPECT_FALSE(buffer_.is_due({pass_, Nanoseconds{0}, Nanoseconds{0}}));
  EXPECT_TRUE(buffer_.is_due({pass_ + 1, Nanoseconds{0}, Nanoseconds{0}}));
}

}  // namespace
}  // namespace gpumeter::nvidia
