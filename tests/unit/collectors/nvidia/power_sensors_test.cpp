#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <deque>
#include <limits>
#include <random>

#include "collectors/nvidia/identity.hpp"
#include "collectors/table/derived.hpp"

namespace gpumeter::nvidia {
namespace {

using enum PowerSource;

Facts card(std::string name, int capability) {
  Facts facts;
  facts.name = std::move(name);
  facts.cc_major = capability / 10;
  facts.cc_minor = capability % 10;
  return facts;
}

/// "window/period coverage" of a source, or "-".
std::string said(const Facts& of, std::string_view driver, PowerSource source) {
  const auto sensor = power_sensor_of(of, driver, source);
  if (!sensor) return "-";
  char text[64];
  std::snprintf(text, sizeof text, "%g/%g %g", sensor->window, sensor->period, sensor->coverage());
  return text;
}

TEST(NvidiaPowerSensors, AreThoseMeasuredOnTheChip) {
  struct {
    Facts of;
    std::string_view driver, average, instant, usage;
  } const kCases[] = {
      {card("NVIDIA H100 80GB HBM3", 90), "580.159.04", "1/0.1 1", "0.025/0.1 0.25", "1/0.1 1"},
      {card("NVIDIA H100 PCIe", 90), "525.60.13", "1/0.1 1", "0.025/0.1 0.25", "-"},
      {card("NVIDIA L40S", 89), "580.105.08", "1/0.1 1", "0.1/0.1 1", "1/0.1 1"},
      {card("NVIDIA L40S", 89), "530.30.02", "1/0.1 1", "0.1/0.1 1", "0.1/0.1 1"},
      {card("NVIDIA A100-SXM4-80GB", 80), "580.105.08", "-", "0.025/0.1 0.25", "0.025/0.1 0.25"},
      {card("Tesla T4", 75), "580.105.08", "-", "0.1/0.1 1", "0.1/0.1 1"},
      {card("Quadro RTX 8000", 75), "535.1", "-", "0.02/0.1 0.2", "0.02/0.1 0.2"},
      {card("Tesla V100-SXM2-32GB", 70), "535.1", "-", "0.01/0.02 0.5", "0.01/0.02 0.5"},
      {card("NVIDIA B200", 100), "580.105.08", "-", "-", "-"},
      {card("NVIDIA H200", 90), "580.105.08", "-", "-", "-"},
      {card("NVIDIA GH200 480GB", 90), "580.105.08", "-", "-", "-"},
      {card("NVIDIA GeForce GTX 780", 35), "470.256.02", "-", "-", "-"},
  };
  for (const auto& [of, driver, of_average, of_instant, of_usage] : kCases) {
    EXPECT_EQ(said(of, driver, average), of_average) << of.name;
    EXPECT_EQ(said(of, driver, instant), of_instant) << of.name;
    EXPECT_EQ(said(of, driver, usage), of_usage) << of.name;
    EXPECT_EQ(power_sensor_of(of, driver, hardware).has_value(), of_instant != "-") << of.name;
  }
}

/// A square wave between idle and full power whose halves vary by a fifth.
class Load {
 public:
  explicit Load(std::mt19937_64& random)
      : random_(random), half_(std::exp(between(std::log(0.01), std::log(2)))) {}

  double at(double time) {
    while (time >= until_) {
      is_on_ = !is_on_;
      until_ += half_ * between(0.8, 1.2);
    }
    return is_on_ ? 700 : 70;
  }
  double between(double low, double high) { return std::uniform_real_distribution(low, high)(random_); }

 private:
  std::mt19937_64& random_;
  double half_;
  double until_ = 0;
  bool is_on_ = false;
};

/// Measured over true energy of a minute that is read once a second. The board's gain is normally
/// distributed.
double ratio_of_a_minute(const PowerSensor& sensor, Integration how, std::uint64_t seed) {
  constexpr double kStep = 0.001;
  constexpr int kBefore = 2000, kSteps = 60000, kReadEvery = 1000;
  std::mt19937_64 random(seed);
  const double gain = std::normal_distribution(1.0, 0.05)(random);
  Load load(random);
  const int period = static_cast<int>(sensor.period / kStep);
  const int phase = static_cast<int>(load.between(0, period));
  std::deque<double> window;
  double shown = 0, truth = 0, sum = 0;
  Integral measured;
  for (int step = 0; step <= kBefore + kSteps; ++step) {
    window.push_back(load.at(step * kStep));
    sum += window.back();
    if (static_cast<double>(window.size()) * kStep > sensor.window + kStep / 2) {
      sum -= window.front();
      window.pop_front();
    }
    if (step > kBefore) truth += window.back() * kStep;
    if (step % period == phase) shown = gain * sum / static_cast<double>(window.size());
    if (step >= kBefore && step % kReadEvery == 0) measured.advance(how, shown, step == kBefore ? 0 : 1);
  }
  return measured.total() / truth;
}

int held(const PowerSensor& sensor, Integration how, double uncertainty) {
  int runs = 0;
  for (std::uint64_t seed = 1; seed <= 100; ++seed)
    runs += std::abs(ratio_of_a_minute(sensor, how, seed) - 1) <= 2 * uncertainty ? 1 : 0;
  return runs;
}

TEST(NvidiaPowerSensors, TheIntervalOf95PercentHoldsTheTrueEnergy) {
  const PowerSensor of_average = power_sensor_of(card("NVIDIA H100 PCIe", 90), "580", average).value();
  const PowerSensor a_quarter = power_sensor_of(card("NVIDIA A100-SXM4-40GB", 80), "580", instant).value();
  const PowerSensor a_half = power_sensor_of(card("Tesla V100-SXM2-16GB", 70), "580", usage).value();
  const double of_a_minute = a_quarter.energy_uncertainty(1, 60);
  EXPECT_GE(held(of_average, Integration::averaged, of_average.energy_uncertainty(1, 60)), 95);
  EXPECT_GE(held(a_quarter, Integration::instantaneous, of_a_minute), 95);
  EXPECT_GE(held(a_half, Integration::instantaneous, a_half.energy_uncertainty(1, 60)), 95);
  // The gain alone would be too narrow for a sensor that misses most of the time.
  EXPECT_LT(held(a_quarter, Integration::instantaneous, 0.05), 90);
}

TEST(NvidiaPowerSensors, TheUncertaintyFallsWithTheSpanToThatOfTheGain) {
  const PowerSensor a_quarter{0.1, 0.025};
  const PowerSensor of_counter{0.106, std::numeric_limits<double>::infinity()};
  EXPECT_NEAR(a_quarter.energy_uncertainty(1, 60), 0.1364, 1e-4);
  EXPECT_NEAR(a_quarter.energy_uncertainty(1, 3600), 0.0526, 1e-4);
  EXPECT_NEAR(of_counter.energy_uncertainty(1, 60), 0.0527, 1e-4);
  EXPECT_NEAR(of_counter.energy_uncertainty(1, 3600), 0.05, 1e-4);
}

}  // namespace
}  // namespace gpumeter::nvidia
