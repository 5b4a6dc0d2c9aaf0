#include "programs/benchmark/blas.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <tuple>

#include "tests/fakes/places.hpp"

namespace gpumeter::benchmark::blas {
namespace {

constexpr pci::Address kAddress{0, 0x0c, 0, 0};

/// The backend with the fake libraries of the vendor, which compute on the processor.
Outcome measured(const char* driver, const char* gpu, Faults faults, const pci::Address& address = kAddress) {
  setenv("FAKE_BLAS", driver, 1);
  setenv("FAKE_BLAS_GPU", gpu, 1);
  Outcome outcome;
  const Pace pace(std::chrono::minutes(10), std::chrono::milliseconds(10));  // slow machines need their time
  measure({places::kFakeBlasFolder}, address, pace, faults, outcome);
  unsetenv("FAKE_BLAS");
  unsetenv("FAKE_BLAS_GPU");
  return outcome;
}

std::string types(const Outcome& outcome) {
  std::string text;
  for (const Measurement& each : outcome.measurements)
    text += each.backend + " " + each.kind + (each.value > 0 && each.runs >= 3 ? "; " : " not measured; ");
  return text;
}

TEST(BenchmarkBlasTest, CublasComputesRightProducts) {
  const Outcome outcome = measured("cuda", "hopper", Faults{});
  EXPECT_EQ(types(outcome),
            "cublas bf16; cublas fp16; cublas tf32; cublas fp32; cublas fp64; cublaslt fp8; ");
  EXPECT_EQ(outcome.failures, std::vector<std::string>{});
  EXPECT_EQ(outcome.notes,
            std::vector<std::string>{"cublas int8: the library does not have it on this device"});
  EXPECT_EQ(outcome.facts, (std::vector<Fact>{{"cublas", "120402 (driver for CUDA 12040)"}}));
}

TEST(BenchmarkBlasTest, RocblasComputesRightProductsInclInt8) {
  const Outcome outcome = measured("hip", "gfx90a", Faults{});
  EXPECT_EQ(types(outcome), "rocblas fp16; rocblas fp32; rocblas fp64; rocblas int8; ");
  EXPECT_EQ(outcome.failures, std::vector<std::string>{});
  EXPECT_EQ(outcome.notes, (std::vector<std::string>{
                               "cublas: cuInit returned 100",
                               "rocblas bf16: the library does not have it on this device",
                               "rocblas tf32: the library does not have it on this device",
                               "hipblaslt fp8: the library does not have it on this device",
                           }));
  EXPECT_EQ(outcome.facts, (std::vector<Fact>{{"rocblas", "4.2.0"}}));
}

TEST(BenchmarkBlasTest, HipblasltComputesInTheEncodingOfTheDevice) {
  for (const char* gpu : {"gfx942", "gfx950", "gfx1201"}) {
    const Outcome outcome = measured("hip", gpu, Faults{});
    EXPECT_NE(types(outcome).find("hipblaslt fp8; "), std::string::npos) << gpu;
    EXPECT_EQ(outcome.failures, std::vector<std::string>{}) << gpu;
    EXPECT_EQ(outcome.facts, (std::vector<Fact>{{"rocblas", "4.2.0"}, {"hipblaslt", "1000"}}));
  }
}

TEST(BenchmarkBlasTest, DevicesWithoutFp8AreANote) {
  const Outcome outcome = measured("cuda", "ampere", Faults{});
  EXPECT_EQ(types(outcome), "cublas bf16; cublas fp16; cublas tf32; cublas fp32; cublas fp64; ");
  EXPECT_EQ(outcome.notes, (std::vector<std::string>{
                               "cublas int8: the library does not have it on this device",
                               "cublaslt fp8: the library does not have it on this device "
                               "(cublasLtMatmulAlgoGetHeuristic returned 15)",
                           }));
  EXPECT_EQ(outcome.failures, std::vector<std::string>{});
}

TEST(BenchmarkBlasTest, OneChangedElementFailsEachType) {
  for (const auto& [driver, gpu, count] :
       {std::tuple("cuda", "hopper", 6U), std::tuple("hip", "gfx942", 5U)}) {
    const Outcome outcome = measured(driver, gpu, Faults{.gemm = true});
    EXPECT_EQ(outcome.failures.size(), outcome.measurements.size()) << driver;
    ASSERT_EQ(outcome.failures.size(), count) << driver;
    EXPECT_NE(outcome.failures[0].find("differs by"), std::string::npos);
  }
}

TEST(BenchmarkBlasTest, AnotherGpuIsNotMeasured) {
  const Outcome outcome = measured("cuda", "hopper", Faults{}, {0, 0x0d, 0, 0});
  EXPECT_TRUE(outcome.measurements.empty());
  EXPECT_TRUE(outcome.failures.empty());
  EXPECT_EQ(outcome.notes[0], "cublas: cuDeviceGetByPCIBusId returned 100");
}

}  // namespace
}  // namespace gpumeter::benchmark::blas
