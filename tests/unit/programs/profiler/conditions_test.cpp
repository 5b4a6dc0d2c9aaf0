#include "programs/profiler/conditions.hpp"

#include <gtest/gtest.h>

#include "collectors/api/catalog.hpp"

namespace gpumeter::profiles {
namespace {

using std::chrono::seconds;

const std::string kRun = R"(run="bert",user="alice")";

/// A run on GPU A; the test sets its counters and looks every 10 s.
class Machine {
 public:
  explicit Machine(std::string condition) : conditions_(thresholds(std::move(condition))) {}

  /// Returns the reasons of the findings.
  std::vector<std::string> look() {
    at_ += seconds(10);
    std::string page;
    const auto add = [&page](const MetricDescriptor& family, const std::string& labels, double value,
                             const char* part = "") {
      page += family.name;
      page += part + ("{" + labels + "} ") + std::to_string(value) + "\n";
    };
    add(catalog::ml_run_gpu_info, kRun + R"(,uuid="A")", 1);
    add(catalog::throttle_seconds, R"(uuid="A",cause="thermal")", hot);
    add(catalog::throttle_seconds, R"(uuid="A",cause="power")", to_seconds(at_));
    add(catalog::throttle_seconds, R"(uuid="B",cause="thermal")", to_seconds(at_));
    if (peak > 0) add(catalog::peak_flops, R"(uuid="A",dtype="bf16")", peak);
    add(catalog::ml_model_flops, kRun, flops);
    const std::string train = kRun + R"(,split="train")";
    add(catalog::ml_step_duration, train + R"(,le="0.1")", 0, "_bucket");
    add(catalog::ml_step_duration, train + R"(,le="0.2")", fast, "_bucket");
    add(catalog::ml_step_duration, train + R"(,le="+Inf")", fast + slow, "_bucket");
    add(catalog::ml_step_duration, train, fast * 0.15 + slow, "_sum");
    add(catalog::ml_step_duration, train, fast + slow, "_count");
    std::vector<std::string> reasons;
    for (const Finding& finding : conditions_.judge(page, at_)) {
      EXPECT_EQ(finding.run, (RunName{"alice", "bert"}));
      EXPECT_EQ(finding.gpu, finding.condition == kThermal ? "A" : "");
      reasons.push_back(finding.reason);
    }
    return reasons;
  }

  double hot = 0, peak = 100, flops = 0;
  double fast = 0;  ///< steps of 0.15 s
  double slow = 0;  ///< steps of 1 s

 private:
  static Thresholds thresholds(std::string condition) {
    Thresholds thresholds;
    thresholds.enabled.push_back(std::move(condition));
    return thresholds;
  }

  Conditions conditions_;
  Nanoseconds at_{};
};

using Reasons = std::vector<std::string>;

TEST(Conditions, ThermalThrottling) {
  Machine machine{std::string(kThermal)};
  for (int i = 0; i < 10; ++i) EXPECT_EQ(machine.look(), Reasons()) << "another GPU, another cause";
  for (int i = 0; i < 5; ++i) {
    machine.hot += 2;
    EXPECT_EQ(machine.look(), Reasons()) << "not yet 20 % of the minute";
  }
  machine.hot += 2;
  EXPECT_EQ(machine.look(), Reasons{"GPU A was throttled by heat for 20 % of 60 s"});
}

TEST(Conditions, SlowSteps) {
  Machine machine{std::string(kSlowSteps)};
  machine.fast = 100;
  for (int i = 0; i < 8; ++i) {
    machine.fast += 10;
    EXPECT_EQ(machine.look(), Reasons());
  }
  machine.slow += 9;  // 9 s and 50 times 0.15 s
  EXPECT_EQ(machine.look(), Reasons());
  machine.slow += 10;
  EXPECT_EQ(machine.look(),
            Reasons{"a step (train) takes 0.4237 s on average, 2.8 times the median of 0.15 s"});
}

TEST(Conditions, SlowStepsNeedAPast) {
  Machine machine{std::string(kSlowSteps)};
  machine.fast = 19;
  for (int i = 0; i < 7; ++i) EXPECT_EQ(machine.look(), Reasons());
  machine.slow = 100;
  EXPECT_EQ(machine.look(), Reasons());
}

TEST(Conditions, LowUtilisation) {
  Machine machine{std::string(kLowMfu)};
  for (int i = 0; i < 7; ++i) {
    machine.flops += 300;  // in 10 s, of 1000
    EXPECT_EQ(machine.look(), Reasons());
  }
  for (int i = 0; i < 2; ++i) EXPECT_EQ(machine.look(), Reasons()) << "still 20 % and more of the minute";
  EXPECT_EQ(machine.look(), Reasons{"the model FLOPS utilisation was 15.0 % over 60 s"});
  machine.flops = 0;
  EXPECT_EQ(machine.look(), Reasons()) << "it began again";
  machine.peak = 0;
  for (int i = 0; i < 7; ++i) EXPECT_EQ(machine.look(), Reasons()) << "no peak is known";
}

}  // namespace
}  // namespace gpumeter::profiles
