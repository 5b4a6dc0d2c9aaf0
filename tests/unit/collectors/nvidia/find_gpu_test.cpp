#include <gtest/gtest.h>

#include "tests/fakes/nvidia_gpu.hpp"

// A GPU is opened by its UUID, whatever the state of the others.

namespace gpumeter::nvidia {
namespace {

std::string two(const std::string& of_first) {
  return "devices: [{uuid: GPU-0, " + of_first + "}, {uuid: GPU-1, temperature: {gpu: 50}}]";
}

std::string second_gpu(FakeDriver& driver) {
  NvidiaGpu gpu(driver, "GPU-1");
  return gpu.attach().sampled();
}

constexpr auto kPage = "gpu_temperature_celsius{sensor=\"core\"} 50\n";

TEST(FindGpu, ByItsUuidNoOtherIsAsked) {
  FakeDriver driver(two("temperature: {gpu: 40}"));
  EXPECT_EQ(second_gpu(driver), kPage);
  EXPECT_EQ(driver.calls("nvmlDeviceGetHandleByUUID"), 1U);
  EXPECT_EQ(driver.calls("nvmlDeviceGetHandleByIndex_v2"), 0U);
}

TEST(FindGpu, OneByOneInALibraryWithoutTheCall) {
  FakeDriver driver(two("temperature: {gpu: 40}"), {"nvmlDeviceGetHandleByUUID"});
  EXPECT_EQ(second_gpu(driver), kPage);
  EXPECT_EQ(driver.calls("nvmlDeviceGetHandleByIndex_v2"), 2U);
}

TEST(FindGpu, OneByOneIfTheSearchFails) {
  FakeDriver driver(two("temperature: {gpu: 40}") +
                    "\nerrors: {nvmlDeviceGetHandleByUUID: {error: unknown}}");
  EXPECT_EQ(second_gpu(driver), kPage);
}

TEST(FindGpu, NoneOfThatUuidIsAnError) {
  FakeDriver driver(two("temperature: {gpu: 40}"));
  const auto device = table_device({driver.library(), false});
  EXPECT_FALSE(device->attach(gpu_of("GPU-2")));
}

}  // namespace
}  // namespace gpumeter::nvidia
