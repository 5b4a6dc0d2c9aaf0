#include "programs/benchmark/guard.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

namespace gpumeter::benchmark {
namespace {

Supervised supervised(const std::function<Outcome()>& work) {
  return supervise(work, std::chrono::seconds(10), [](int) { return std::nullopt; });
}

TEST(BenchmarkGuardTest, WorkReturnsItsOutcome) {
  Outcome outcome;
  outcome.measurements = {{Quantity::flops, "bf16", "cublas", 1.5e12, 1e10, 40},
                          {Quantity::transfer, "host_to_device", "opencl", 5.4e10, 0.1, 9}};
  outcome.failures = {"gemm fp32: two\nlines"};
  outcome.notes = {"a\tnote"};
  outcome.facts = {{"cublas", "120402"}};
  const Supervised done = supervised([&] { return outcome; });
  EXPECT_EQ(done.end, End::finished);
  EXPECT_EQ(done.outcome.measurements, outcome.measurements);
  EXPECT_EQ(done.outcome.failures, outcome.failures);
  EXPECT_EQ(done.outcome.notes, outcome.notes);
  EXPECT_EQ(done.outcome.facts, outcome.facts);
}

TEST(BenchmarkGuardTest, AProcessThatADriverEndsHasNoOutcome) {
  const Supervised done = supervised([]() -> Outcome { _exit(3); });
  EXPECT_EQ(done.end, End::stopped);
  EXPECT_EQ(done.reason, "the driver ended the process with status 3");
}

TEST(BenchmarkGuardTest, ItsOwnWorkloadIsNobodyElse) {
  const std::string cgroup = "0::/system.slice/gpumeter-benchmark.service\n";
  EXPECT_TRUE(is_part_of(cgroup, {"unit", "gpumeter-benchmark.service"}));
  EXPECT_FALSE(is_part_of(cgroup, {"unit", "ollama.service"}));
  EXPECT_FALSE(is_part_of(cgroup, {"unit", ""}));
}

}  // namespace
}  // namespace gpumeter::benchmark
