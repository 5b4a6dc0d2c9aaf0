#include <gtest/gtest.h>

#include "tests/fakes/nvidia_gpu.hpp"

// Libraries of older drivers: missing functions, and structs in older layouts.

namespace gpumeter::nvidia {
namespace {

std::string sampled(const std::string& keys, const std::vector<std::string>& lacking,
                    const std::string& layouts = "{}") {
  FakeDriver driver("layouts: " + layouts + "\ndevices: [{uuid: GPU-0, " + keys + "}]", lacking);
  NvidiaGpu gpu(driver);
  const std::string text = gpu.attach().sampled();
  gpu.page().release();
  EXPECT_EQ(driver.violations(), "");
  EXPECT_EQ(driver.opened(), FakeDriver::kNothing);
  return text;
}

// The first layout counts reserved memory as used.
constexpr auto kMemory = "memory: {total: 100, reserved: 10, used: 30, free: 60}";
constexpr auto kMemoryOfFirstLayout =
    "gpu_memory_free_bytes{memory=\"vram\"} 60\n"
    "gpu_memory_size_bytes{memory=\"vram\"} 100\n"
    "gpu_memory_used_bytes{memory=\"vram\"} 40\n";

TEST(OldLibrary, MemoryInItsFirstLayout) {
  EXPECT_EQ(sampled(kMemory, {}, "{memory: 1}"), kMemoryOfFirstLayout);
}

TEST(OldLibrary, WithoutTheSecondMemoryCall) {
  EXPECT_EQ(sampled(kMemory, {"nvmlDeviceGetMemoryInfo_v2"}), kMemoryOfFirstLayout);
}

constexpr auto kReasons = "clocks: {reasons: [sw_thermal], supported_reasons: [sw_thermal, sw_power_cap]}";
constexpr auto kReasonsText =
    "gpu_throttle_reason_active{cause=\"power\",reason=\"sw_power_cap\"} 0\n"
    "gpu_throttle_reason_active{cause=\"thermal\",reason=\"sw_thermal\"} 1\n"
    "gpu_throttle_reason_seconds_total{cause=\"power\",reason=\"sw_power_cap\"} 0\n"
    "gpu_throttle_reason_seconds_total{cause=\"thermal\",reason=\"sw_thermal\"} 0\n"
    "gpu_throttle_seconds_total{cause=\"power\"} 0\n"
    "gpu_throttle_seconds_total{cause=\"thermal\"} 0\n"
    "gpu_throttled{cause=\"power\"} 0\n"
    "gpu_throttled{cause=\"thermal\"} 1\n";

TEST(OldLibrary, ReasonsByTheirPresentName) { EXPECT_EQ(sampled(kReasons, {}), kReasonsText); }

TEST(OldLibrary, ReasonsByTheirFormerName) {
  EXPECT_EQ(sampled(kReasons,
                    {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetSupportedClocksEventReasons"}),
            kReasonsText);
}

TEST(OldLibrary, TemperatureByTheFormerCall) {
  EXPECT_EQ(sampled("temperature: {gpu: 53, margin: 20, thresholds: {slowdown: 90, gpu_max: 95}}",
                    {"nvmlDeviceGetTemperatureV", "nvmlDeviceGetMarginTemperature"}),
            "gpu_temperature_celsius{sensor=\"core\"} 53\n"
            "gpu_temperature_limit_celsius{sensor=\"core\",limit=\"max\"} 95\n"
            "gpu_temperature_limit_celsius{sensor=\"core\",limit=\"slowdown\"} 90\n"
            "gpu_temperature_margin_celsius{sensor=\"core\"} 37\n");
}

TEST(OldLibrary, OneThatHasNoTemperatureAtAll) {
  EXPECT_EQ(sampled("temperature: {gpu: 53}", {"nvmlDeviceGetTemperatureV", "nvmlDeviceGetTemperature"}), "");
}

TEST(OldLibrary, FansByTheFormerCall) {
  EXPECT_EQ(sampled("fans: [{percent: 26}]", {"nvmlDeviceGetFanSpeed_v2", "nvmlDeviceGetNumFans"}),
            "gpu_fan_speed_ratio{fan=\"0\"} 0.26\n");
}

TEST(OldLibrary, FieldsThatItDoesNotKnowAreAbsent) {
  EXPECT_EQ(sampled("power: {draw: 90 W}, fields: {185: 80000, 186: 85000}", {}, "{fields: 161}"),
            "gpu_energy_joules_total 0\n"
            "gpu_power_max_watts{window=\"1m\"} 90\n"
            "gpu_power_min_watts{window=\"1m\"} 90\n"
            "gpu_power_watts 90\n");
}

TEST(OldLibrary, WithoutGpmSamplesAndEvents) {
  EXPECT_EQ(sampled(R"(gpm: {supported: yes, metrics: {2: 5}}, supported_events: [xid], power: {draw: 90 W},
                       samples: {power: {period_ms: 20, capacity: 120, value: 90 W}})",
                    {"nvmlGpmSampleAlloc", "nvmlDeviceGetSamples", "nvmlEventSetCreate"}),
            "gpu_energy_joules_total 0\n"
            "gpu_power_max_watts{window=\"1m\"} 90\n"
            "gpu_power_min_watts{window=\"1m\"} 90\n"
            "gpu_power_watts 90\n");
}

TEST(OldLibrary, WithoutWhatIsRequiredIsRefusedInWords) {
  FakeDriver driver("devices: []", {"nvmlDeviceGetCount_v2"});
  const auto session = NvmlSession::shared(driver.library());
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().message(),
            driver.library() + ": has no nvmlDeviceGetCount_v2: this driver is too old");
  EXPECT_EQ(driver.calls("nvmlInit_v2"), 0U);
}

TEST(OldLibrary, SaysWhatItLacks) {
  FakeDriver driver("devices: []", {"nvmlGpmSampleGet", "nvmlDeviceGetMemoryInfo_v2"});
  const std::string missing = (*NvmlSession::shared(driver.library()))->missing();
  EXPECT_NE(missing.find("nvmlGpmSampleGet"), std::string::npos);
  EXPECT_NE(missing.find("nvmlDeviceGetMemoryInfo_v2"), std::string::npos);
  EXPECT_EQ(missing.size(), std::string("nvmlGpmSampleGet, nvmlDeviceGetMemoryInfo_v2").size());
}

}  // namespace
}  // namespace gpumeter::nvidia
