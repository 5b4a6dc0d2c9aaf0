#include "collectors/nvidia/readers/gpm_sampler.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "tests/fakes/nvidia_gpu.hpp"

namespace gpumeter::nvidia {
namespace {

/// The sampler uses the real clock, and takes no sample within 110 ms of the last.
void wait() { std::this_thread::sleep_for(std::chrono::milliseconds(115)); }

class Gpm : public testing::Test {
 protected:
  void play(const std::string& device, const std::string& layouts = "{}") {
    driver_.emplace("layouts: " + layouts + "\ndevices: [{uuid: GPU-0, " + device + "}]");
    driver_->set_time(0);
    gpu_ = *find_gpu(*NvmlSession::shared(driver_->library()), "GPU-0");
  }
  double read(int place, double at) {
    wait();
    driver_->set_time(at);
    sampler_.begin_pass();
    return sampler_.read(place).value;
  }
  void TearDown() override {
    sampler_.close();
    gpu_ = {};
    EXPECT_EQ(driver_->violations(), "");
    EXPECT_EQ(driver_->opened(), FakeDriver::kNothing);
  }

  std::optional<FakeDriver> driver_;
  NvmlCaller gpu_;
  GpmSampler sampler_;
};

TEST_F(Gpm, GivesTheMeanSinceThePassBefore) {
  play("gpm: {supported: yes, metrics: {2: {square: {period: 2, duty: 0.25, high: 80}}}}");
  sampler_.open(gpu_, std::nullopt);
  const std::optional<int> place = sampler_.add(2);
  ASSERT_TRUE(place);
  EXPECT_EQ(read(*place, 2), 20);  // half a second of 80 %
  EXPECT_EQ(read(*place, 3), 40);
  EXPECT_EQ(read(*place, 4), 0);
  EXPECT_GE(sampler_.interval(), 0.1);
}

TEST_F(Gpm, TakesNoTwoSamplesWithinATenthOfASecond) {
  driver_.emplace("devices: [{uuid: GPU-0, gpm: {supported: yes, metrics: {2: 5}}}]");  // real time
  gpu_ = *find_gpu(*NvmlSession::shared(driver_->library()), "GPU-0");
  sampler_.open(gpu_, std::nullopt);
  const std::optional<int> place = sampler_.add(2);  // waits for the second sample
  ASSERT_TRUE(place);
  EXPECT_EQ(driver_->calls("nvmlGpmSampleGet"), 2U);
  for (int pass = 0; pass < 50; ++pass) {  // the fake records samples that are too close
    sampler_.begin_pass();
    EXPECT_EQ(sampler_.read(*place).value, 5);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_GT(driver_->calls("nvmlGpmSampleGet"), 2U);
}

TEST_F(Gpm, OnePassIsOneSampleHoweverManyRowsRead) {
  play("gpm: {supported: yes, metrics: {2: 10, 3: 20}}");
  sampler_.open(gpu_, std::nullopt);
  const int first = *sampler_.add(2), second = *sampler_.add(3);
  const auto before = driver_->calls();
  EXPECT_EQ(read(first, 1), 10);
  EXPECT_EQ(sampler_.read(second).value, 20);
  EXPECT_EQ(sampler_.read(first).value, 10);
  EXPECT_EQ(driver_->calls() - before, 2U);  // the sample, and the metrics of both
}

TEST_F(Gpm, WhatTheGpuLacksTakesNoPlace) {
  play("gpm: {supported: yes, metrics: {2: 10, 5: {error: no_permission}}}");
  sampler_.open(gpu_, std::nullopt);
  EXPECT_EQ(sampler_.add(3), std::nullopt);
  EXPECT_EQ(sampler_.add(5), std::nullopt);
  EXPECT_EQ(sampler_.add(2), 0);
}

TEST_F(Gpm, ALibraryThatReads98MetricsHasTheOthersNot) {
  play("gpm: {supported: yes, metrics: {2: 10, 97: 20, 248: {rate: 1000}, 249: {rate: 500}}}",
       "{gpm_metrics: 98}");
  sampler_.open(gpu_, std::nullopt);
  EXPECT_EQ(sampler_.add(249), std::nullopt);
  EXPECT_EQ(sampler_.add(97), 0);
  EXPECT_EQ(sampler_.add(2), 1);
  EXPECT_EQ(read(1, 1), 10);
}

TEST_F(Gpm, EachInstanceHasItsOwnSamples) {
  play(R"(
    gpm: {supported: yes, metrics: {2: 70}},
    mig: {mode: enabled, most: 7, instances: [{gi: 3, ci: 0, gpm: {metrics: {2: 30}}}, {gi: 9, ci: 0, gpm: {metrics: {2: 50}}}]})");
  sampler_.open(gpu_, std::nullopt);
  GpmSampler third, ninth;
  third.open(gpu_, 3);
  ninth.open(gpu_, 9);
  EXPECT_EQ(driver_->open().gpm_samples, 6U);
  EXPECT_EQ(sampler_.read(*sampler_.add(2)).value, 70);
  EXPECT_EQ(third.read(*third.add(2)).value, 30);
  EXPECT_EQ(ninth.read(*ninth.add(2)).value, 50);
  GpmSampler none;
  none.open(gpu_, 4);
  EXPECT_EQ(none.add(2), std::nullopt);
}

TEST_F(Gpm, AGpuWithoutItOpensNothing) {
  play("gpm: {supported: no, metrics: {2: 10}}");
  sampler_.open(gpu_, std::nullopt);
  EXPECT_EQ(sampler_.add(2), std::nullopt);
  EXPECT_EQ(driver_->open().gpm_samples, 0U);
}

TEST_F(Gpm, CloseFreesItsSamplesAndOpenTakesThemAgain) {
  play("gpm: {supported: yes, metrics: {2: 10}}");
  for (int round = 0; round < 3; ++round) {
    sampler_.open(gpu_, std::nullopt);
    EXPECT_EQ(driver_->open().gpm_samples, 2U);
    EXPECT_EQ(sampler_.add(2), 0);
    EXPECT_EQ(sampler_.read(0).value, 10);
    sampler_.close();
    EXPECT_EQ(driver_->open().gpm_samples, 0U);
  }
}

TEST_F(Gpm, FreesItsSamplesAfterTheDriverWentAway) {
  play("gpm: {supported: yes, metrics: {2: 10}}");
  sampler_.open(gpu_, std::nullopt);
  gpu_.session()->condemn();
  sampler_.close();
  EXPECT_EQ(driver_->open().gpm_samples, 0U);
}

}  // namespace
}  // namespace gpumeter::nvidia
