#include "collectors/benchmark/blas/run.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>

namespace gpumeter::benchmark::blas {
namespace {

constexpr pci::Address kAddress{0, 0x0c, 0, 0};

/// The backend with the fake libraries of the vendor, which compute on the processor.
Outcome measured(const char* driver, Faults faults, const pci::Address& address = kAddress) {
  setenv("FAKE_BLAS", driver, 1);
  Outcome outcome;
  const Pace pace(std::chrono::minutes(10), std::chrono::milliseconds(10));  // slow machines need their time
  measure({GPUMETER_FAKE_BLAS}, address, pace, faults, outcome);
  unsetenv("FAKE_BLAS");
  return outcome;
}

std::string types(const Outcome& outcome) {
  std::string text;
  for (const Measurement& each : outcome.measurements)
    text += each.backend + " " + each.kind + (each.value > 0 && each.runs >= 3 ? "; " : " not measured; ");
  return text;
}

TEST(BenchmarkBlasTest, CublasComputesRightProducts) {
  const Outcome outcome = measured("cuda", Faults{});
  EXPECT_EQ(types(outcome), "cublas bf16; cublas fp16; cublas tf32; cublas fp32; cublas fp64; ");
  EXPECT_EQ(outcome.failures, std::vector<std::string>{});
  EXPECT_EQ(outcome.notes,
            std::vector<std::string>{"cublas int8: the library does not have it on this device"});
  EXPECT_EQ(outcome.facts, (std::vector<Fact>{{"cublas", "120402 (driver for CUDA 12040)"}}));
}

TEST(BenchmarkBlasTest, RocblasComputesRightProductsInclInt8) {
  const Outcome outcome = measured("hip", Faults{});
  EXPECT_EQ(types(outcome), "rocblas fp16; rocblas fp32; rocblas fp64; rocblas int8; ");
  EXPECT_EQ(outcome.failures, std::vector<std::string>{});
  ASSERT_EQ(outcome.notes.size(), 3U);
  EXPECT_EQ(outcome.notes[0], "cublas: cuInit returned 100");
  EXPECT_EQ(outcome.notes[1], "rocblas bf16: the library does not have it on this device");
  EXPECT_EQ(outcome.facts, (std::vector<Fact>{{"rocblas", "4.2.0"}}));
}

TEST(BenchmarkBlasTest, OneChangedElementFailsEachType) {
  for (const char* driver : {"cuda", "hip"}) {
    const Outcome outcome = measured(driver, Faults{.gemm = true});
    EXPECT_EQ(outcome.failures.size(), outcome.measurements.size()) << driver;
    ASSERT_FALSE(outcome.failures.empty());
    EXPECT_NE(outcome.failures[0].find("differs by"), std::string::npos);
  }
}

TEST(BenchmarkBlasTest, AnotherGpuIsNotMeasured) {
  const Outcome outcome = measured("cuda", Faults{}, {0, 0x0d, 0, 0});
  EXPECT_TRUE(outcome.measurements.empty());
  EXPECT_TRUE(outcome.failures.empty());
  EXPECT_EQ(outcome.notes[0], "cublas: cuDeviceGetByPCIBusId returned 100");
}

}  // namespace
}  // namespace gpumeter::benchmark::blas
