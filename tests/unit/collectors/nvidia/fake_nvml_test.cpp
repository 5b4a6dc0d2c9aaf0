#include "tests/fakes/nvml/fake_nvml.hpp"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>

#include "collectors/nvidia/nvml/abi.hpp"
#include "collectors/nvidia/nvml/constants.hpp"
#include "tests/fakes/nvml/without_symbols.hpp"
#include "tests/fakes/places.hpp"

// The fake libnvidia-ml itself: a call returns exactly the scenario's value at a given time.

namespace gpumeter::nvidia {
namespace {

using testing::ElementsAre;

const char* const kLibrary = places::kFakeNvml;

template <class Function>
Function* symbol(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

class FakeNvml : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NE(library_, nullptr) << dlerror();
#define LOAD(name, arguments) call.name = symbol<unsigned arguments>(library_, #name);
    GPUMETER_NVML_REQUIRED(LOAD)
    GPUMETER_NVML_OPTIONAL(LOAD)
#undef LOAD
    set_time(0);
  }

  void TearDown() override {
    while (call.nvmlShutdown() == nvml::kSuccess) {
    }
    std::filesystem::remove(path_);
  }

  void play(const std::string& scenario) {
    std::ofstream(path_) << scenario;
    setenv("FAKE_NVML_SCENARIO", path_.c_str(), 1);
    symbol<decltype(fake_nvml_reload)>(library_, "fake_nvml_reload")();
    ASSERT_EQ(call.nvmlInit_v2(), nvml::kSuccess);
  }

  nvml::Device device(unsigned index = 0) const {
    nvml::Device handle{};
    EXPECT_EQ(call.nvmlDeviceGetHandleByIndex_v2(index, &handle), nvml::kSuccess);
    return handle;
  }

  void set_time(double seconds) {
    symbol<decltype(fake_nvml_set_time)>(library_, "fake_nvml_set_time")(seconds);
  }

  unsigned power(nvml::Device handle, unsigned* error = nullptr) const {
    unsigned milliwatts = 0;
    const unsigned result = call.nvmlDeviceGetPowerUsage(handle, &milliwatts);
    if (error != nullptr) *error = result;
    return milliwatts;
  }

  std::string violations() const {
    return symbol<decltype(fake_nvml_violations)>(library_, "fake_nvml_violations")();
  }

  void* library_ = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  std::filesystem::path path_ =
      std::filesystem::temp_directory_path() / ("fake_nvml_" + std::to_string(getpid()) + ".yaml");
  NvmlFunctions call;
};

TEST_F(FakeNvml, ASquareWaveAndItsIntegralAgreeExactly) {
  play(R"(
devices:
  - power:
      draw: {square: {period: 2, duty: 0.37, high: 700 W, low: 100 W}}
      energy: {integral_of: {same_as: power.draw}, from: 5000}
    temperature: {gpu: {rate: 2, from: 30}}
    utilization: {gpu: {steps: [[0, 10 %], [4, {error: no_permission}], [5, 90 %]]}, memory: 1}
)");
  const auto gpu = device();
  std::uint64_t millijoules = 0;
  set_time(10.5);  // 5 periods of 0.74 s at 700 W and 1.26 s at 100 W, then half a second at 700 W
  EXPECT_EQ(power(gpu), 700000U);
  ASSERT_EQ(call.nvmlDeviceGetTotalEnergyConsumption(gpu, &millijoules), nvml::kSuccess);
  EXPECT_EQ(millijoules, 5000U + 5 * (518000 + 126000) + 350000);
  unsigned celsius = 0;
  EXPECT_EQ(call.nvmlDeviceGetTemperature(gpu, 0, &celsius), nvml::kSuccess);
  EXPECT_EQ(celsius, 51U);
  nvml::Utilization share{};
  EXPECT_EQ(call.nvmlDeviceGetUtilizationRates(gpu, &share), nvml::kSuccess);
  EXPECT_EQ(share.gpu, 90U);
  set_time(4.5);
  EXPECT_EQ(call.nvmlDeviceGetUtilizationRates(gpu, &share), nvml::kNoPermission);
  EXPECT_EQ(call.nvmlDeviceGetSerial(gpu, nullptr, 0), nvml::kInvalidArgument);
  EXPECT_EQ(violations(), "");
}

TEST_F(FakeNvml, ALostDeviceComesBackWithAnotherHandle) {
  play("devices: [{power: {draw: 1 W}}, {power: {draw: 2 W}, lost: {from: 5, until: 12}}]");
  const auto before = device(1);
  unsigned error = 0;
  EXPECT_EQ(power(before), 2000U);
  set_time(5);
  power(before, &error);
  EXPECT_EQ(error, nvml::kGpuIsLost);
  nvml::Device handle{};
  EXPECT_EQ(call.nvmlDeviceGetHandleByIndex_v2(1, &handle), nvml::kGpuIsLost);
  EXPECT_EQ(power(device(0)), 1000U);
  set_time(12);
  power(before, &error);
  EXPECT_EQ(error, nvml::kGpuIsLost);
  EXPECT_EQ(power(device(1)), 2000U);
}

TEST_F(FakeNvml, ALossCanBeRepeated) {
  play("devices: [{power: {draw: 1 W}, lost: {from: 1, until: 2, every: 3, times: 1000}}]");
  set_time(2997);
  const auto before = device();
  EXPECT_EQ(power(before), 1000U);
  set_time(2998.5);
  nvml::Device handle{};
  EXPECT_EQ(call.nvmlDeviceGetHandleByIndex_v2(0, &handle), nvml::kGpuIsLost);
  set_time(3001.5);  // the thousandth was the last
  EXPECT_EQ(power(device()), 1000U);
  unsigned error = 0;
  power(before, &error);
  EXPECT_EQ(error, nvml::kGpuIsLost);
}

TEST_F(FakeNvml, AHungDeviceLeavesTheOthersAlone) {
  play("devices: [{power: {draw: 1 W}}, {power: {draw: 2 W}, hang: {after: 5, for: forever}}]");
  const auto well = device(0), hung = device(1);
  set_time(5);
  auto stuck = std::async(std::launch::async, [&] { return power(hung); });
  while (symbol<decltype(fake_nvml_open)>(library_, "fake_nvml_open")().calls_under_way == 0) {
  }
  EXPECT_EQ(power(well), 1000U);
  EXPECT_EQ(symbol<decltype(fake_nvml_open)>(library_, "fake_nvml_open")().calls_under_way, 1U);
  EXPECT_EQ(call.nvmlShutdown(), nvml::kSuccess);
  EXPECT_EQ(violations(), "nvmlShutdown with a call under way\n");
  symbol<decltype(fake_nvml_reload)>(library_, "fake_nvml_reload")();
  EXPECT_EQ(stuck.get(), 2000U);
}

TEST_F(FakeNvml, AnOldDriverRefusesNewLayoutsAndOverrunsNoOldOne) {
  play(R"(
layouts: {memory: 1, fabric: 2, fields: 100, gpm_metrics: 98}
devices: [{memory: {total: 3, used: 1, free: 2}, fabric: {state: completed, clique: 4, health_summary: healthy}, fields: {82: 50}}]
)");
  nvml::MemoryV2 memory{.version = nvml::version_of<nvml::MemoryV2>(2)};
  EXPECT_EQ(call.nvmlDeviceGetMemoryInfo_v2(device(), &memory), nvml::kArgumentVersionMismatch);
  nvml::Memory old{};
  EXPECT_EQ(call.nvmlDeviceGetMemoryInfo(device(), &old), nvml::kSuccess);
  EXPECT_EQ(old.used, 1U);
  nvml::FabricInfoV3 fabric{.version = nvml::version_of<nvml::FabricInfoV3>(3)};
  EXPECT_EQ(call.nvmlDeviceGetGpuFabricInfoV(device(), &fabric), nvml::kArgumentVersionMismatch);
  fabric.health_summary = 0x5A;
  fabric.version = nvml::version_of<nvml::FabricInfoV2>(2);
  EXPECT_EQ(call.nvmlDeviceGetGpuFabricInfoV(device(), &fabric), nvml::kSuccess);
  EXPECT_EQ(fabric.state, 3U);
  EXPECT_EQ(fabric.clique, 4U);
  EXPECT_EQ(fabric.health_summary, 0x5A);  // the byte after version 2
  nvml::FieldValue fields[3] = {{.field = 82}, {.field = 83}, {.field = 100}};
  EXPECT_EQ(call.nvmlDeviceGetFieldValues(device(), 3, fields), nvml::kSuccess);
  EXPECT_THAT((std::array{fields[0].result, fields[1].result, fields[2].result}),
              ElementsAre(nvml::kSuccess, nvml::kNotSupported, nvml::kInvalidArgument));
  EXPECT_EQ(fields[0].value.as_uint, 50U);
}

TEST_F(FakeNvml, ACopyLacksTheNamedFunctionsOnly) {
  const auto copy = std::filesystem::temp_directory_path() / ("lacking_" + std::to_string(getpid()) + ".so");
  fake_nvml::copy_without_symbols(kLibrary, copy, {"nvmlDeviceGetMemoryInfo_v2", "nvmlGpmSampleGet"});
  void* lacking = dlopen(copy.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(lacking, nullptr) << dlerror();
  EXPECT_EQ(dlsym(lacking, "nvmlDeviceGetMemoryInfo_v2"), nullptr);
  EXPECT_EQ(dlsym(lacking, "nvmlGpmSampleGet"), nullptr);
  EXPECT_NE(dlsym(lacking, "nvmlDeviceGetMemoryInfo"), nullptr);
  EXPECT_NE(dlsym(lacking, "nvmlInit_v2"), nullptr);
  EXPECT_ANY_THROW(fake_nvml::copy_without_symbols(kLibrary, copy, {"nvmlNoSuchFunction"}));
  dlclose(lacking);
  std::filesystem::remove(copy);
}

TEST_F(FakeNvml, OneSetReturnsBothFormatsInTheirOrderAndContextsOfTheLast) {
  play(R"(
devices: [{uuid: GPU-7, supported_events: [xid], operational_events: yes, bank_remapper: {active: 2, inactive: 1, pending: 1, max: 30, none: 0}}]
events:
  - {at: 1, device: 0, type: operational, module: GPU-GSP, code: 1, severity: 40, contexts: [0, 119]}
  - {at: 2, device: 0, type: xid, data: 31, gi: 3}
)");
  nvml::EventSet set{};
  ASSERT_EQ(call.nvmlEventSetCreate(&set), nvml::kSuccess);
  nvml::OperationalEventConfig config{.uuid = "GPU-7"};
  ASSERT_EQ(call.nvmlEventSetRegisterGpuOperationalEvents_v1(set, &config), nvml::kSuccess);
  ASSERT_EQ(call.nvmlDeviceRegisterEvents(device(), nvml::kEventXid, set), nvml::kSuccess);
  nvml::EventContextCount contexts{};
  EXPECT_EQ(call.nvmlEventSetGetContextCount_v1(set, &contexts), nvml::kNotFound);
  set_time(3);
  nvml::SetEvent event{};
  ASSERT_EQ(call.nvmlEventSetWait_v3(set, &event), nvml::kSuccess);
  EXPECT_EQ(event.data_type, nvml::kOperationalEvent);
  EXPECT_STREQ(event.uuid, "GPU-7");
  EXPECT_STREQ(event.source_module, "GPU-GSP");
  EXPECT_EQ(event.severity, nvml::kSeverityFatal);
  ASSERT_EQ(call.nvmlEventSetGetContextCount_v1(set, &contexts), nvml::kSuccess);
  EXPECT_EQ(contexts.count, 2U);
  nvml::EventLegacyXid xid{.index = 0};
  EXPECT_EQ(call.nvmlEventSetGetGpuOperationalEventContextLegacyXid_v1(set, &xid), nvml::kNotFound);
  xid.index = 1;
  ASSERT_EQ(call.nvmlEventSetGetGpuOperationalEventContextLegacyXid_v1(set, &xid), nvml::kSuccess);
  EXPECT_EQ(xid.xid, 119U);
  ASSERT_EQ(call.nvmlEventSetWait_v3(set, &event), nvml::kSuccess);
  EXPECT_EQ(event.data_type, 0U);
  EXPECT_EQ(event.type, nvml::kEventXid);
  EXPECT_EQ(event.data, 31U);
  EXPECT_EQ(event.gpu_instance, 3U);
  EXPECT_EQ(call.nvmlEventSetWait_v3(set, &event), nvml::kTimeout);
  nvml::BankRemapperStatus banks{};
  ASSERT_EQ(call.nvmlDeviceGetBankRemapperStatus_v1(device(), &banks), nvml::kSuccess);
  EXPECT_EQ(banks.is_pending, 1U);
  EXPECT_EQ(banks.max, 30U);
  EXPECT_EQ(call.nvmlEventSetFree(set), nvml::kSuccess);
}

TEST_F(FakeNvml, EventsComeAtTheirTimeToWhoRegisteredBefore) {
  play(R"(
devices: [{supported_events: [xid]}, {supported_events: [xid]}]
events: [{at: 5, device: 1, type: xid, data: 79, gi: 3}]
storms: [{from: 6, until: 6.5, rate: 10, device: 1, type: xid, data: 31}]
)");
  nvml::EventSet set{};
  ASSERT_EQ(call.nvmlEventSetCreate(&set), nvml::kSuccess);
  EXPECT_EQ(call.nvmlDeviceRegisterEvents(device(1), nvml::kEventXid | nvml::kEventPoisonFatal, set),
            nvml::kNotSupported);
  ASSERT_EQ(call.nvmlDeviceRegisterEvents(device(1), nvml::kEventXid, set), nvml::kSuccess);
  nvml::EventData event{};
  EXPECT_EQ(call.nvmlEventSetWait_v2(set, &event, 0), nvml::kTimeout);
  set_time(5);
  ASSERT_EQ(call.nvmlEventSetWait_v2(set, &event, 1000), nvml::kSuccess);
  EXPECT_EQ(event.device, device(1));
  EXPECT_EQ(event.type, nvml::kEventXid);
  EXPECT_EQ(event.data, 79U);
  EXPECT_EQ(event.gpu_instance, 3U);
  EXPECT_EQ(event.compute_instance, nvml::kNoInstance);
  EXPECT_EQ(call.nvmlEventSetWait_v2(set, &event, 0), nvml::kTimeout);
  auto waiting = std::async(std::launch::async, [&] { return call.nvmlEventSetWait_v2(set, &event, 60000); });
  set_time(6.05);
  EXPECT_EQ(waiting.get(), nvml::kSuccess);
  set_time(100);
  int more = 0;
  while (call.nvmlEventSetWait_v2(set, &event, 0) == nvml::kSuccess) more += event.data == 31 ? 1 : 100;
  EXPECT_EQ(more, 4);
  EXPECT_EQ(call.nvmlEventSetFree(set), nvml::kSuccess);
  EXPECT_EQ(violations(), "");
}

TEST_F(FakeNvml, SampleBuffersHoldTheNewestAndRunDry) {
  play(R"(
devices:
  - samples: {power: {period_ms: 500, capacity: 4, dry: [[7, 9]],
                      value: {square: {period: 2, duty: 0.75, high: 800, low: 0}}}}
)");
  set_time(4);
  nvml::ValueType type{};
  unsigned count = 0;
  ASSERT_EQ(call.nvmlDeviceGetSamples(device(), 0, 0, &type, &count, nullptr), nvml::kSuccess);
  ASSERT_EQ(count, 4U);
  nvml::BufferSample samples[4];
  ASSERT_EQ(call.nvmlDeviceGetSamples(device(), 0, 0, &type, &count, samples), nvml::kSuccess);
  EXPECT_THAT((std::array{samples[0].value.as_uint, samples[1].value.as_uint, samples[2].value.as_uint,
                          samples[3].value.as_uint}),
              ElementsAre(800, 800, 800, 0));
  EXPECT_EQ(samples[3].timestamp - samples[0].timestamp, 1500000U);
  const auto last = samples[3].timestamp;
  EXPECT_EQ(call.nvmlDeviceGetSamples(device(), 0, last, &type, &count, samples), nvml::kNotFound);
  set_time(8.9);
  EXPECT_EQ(call.nvmlDeviceGetSamples(device(), 0, last + 2500000, &type, &count, samples), nvml::kNotFound);
  EXPECT_EQ(call.nvmlDeviceGetSamples(device(), 1, 0, &type, &count, samples), nvml::kNotSupported);
}

TEST_F(FakeNvml, GpmAveragesBetweenTwoSamplesOfAnInstance) {
  play(R"(
devices:
  - gpm: {supported: yes, metrics: {1: 5}}
    mig: {most: 7, instances: [{gi: 9, gpm: {metrics: {NVML_GPM_METRIC_GRAPHICS_UTIL: {square: {period: 2, duty: 0.25, high: 80}}, 248: {rate: 1000}}}}]}
)");
  nvml::GpmMetricsGet get{.version = 1, .count = 3};
  call.nvmlGpmSampleAlloc(&get.first);
  call.nvmlGpmSampleAlloc(&get.second);
  get.metrics[0].id = 1;
  get.metrics[1].id = 248;
  get.metrics[2].id = 2;
  EXPECT_EQ(call.nvmlGpmMigSampleGet(device(), 8, get.first), nvml::kInvalidArgument);
  ASSERT_EQ(call.nvmlGpmMigSampleGet(device(), 9, get.first), nvml::kSuccess);
  set_time(4);
  ASSERT_EQ(call.nvmlGpmMigSampleGet(device(), 9, get.second), nvml::kSuccess);
  ASSERT_EQ(call.nvmlGpmMetricsGet(&get), nvml::kSuccess);
  EXPECT_EQ(get.metrics[0].value, 20);
  EXPECT_EQ(get.metrics[1].value, 4000);
  EXPECT_EQ(get.metrics[2].result, nvml::kNotSupported);
  EXPECT_EQ(call.nvmlGpmSampleFree(get.first), nvml::kSuccess);
  EXPECT_EQ(call.nvmlGpmSampleFree(get.first), nvml::kInvalidArgument);
  EXPECT_EQ(violations(), "nvmlGpmSampleFree with a freed GPM sample\n");
}

TEST_F(FakeNvml, AKeyThatNothingReadsIsRefused) {
  play("devices: [{power: {draw: 1 W}}]");
  ASSERT_EQ(call.nvmlShutdown(), nvml::kSuccess);
  std::ofstream(path_) << "devices: [{power: {drawn: 1 W}}]";
  testing::internal::CaptureStderr();
  EXPECT_EQ(call.nvmlInit_v2(), nvml::kUnknown);
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "fake_nvml: " + path_.string() + ": nothing reads the key power.drawn\n");
}

TEST_F(FakeNvml, RulesThatAreBrokenAreNamed) {
  play("devices: [{power: {draw: 1 W}, gpm: {supported: yes, metrics: {1: 5}}}]");
  const auto old = device();
  nvml::GpmMetricsGet get{.version = 1, .count = 1};
  call.nvmlGpmSampleAlloc(&get.first);
  call.nvmlGpmSampleAlloc(&get.second);
  call.nvmlGpmSampleGet(old, get.first);
  set_time(0.05);
  call.nvmlGpmSampleGet(old, get.second);
  EXPECT_EQ(call.nvmlGpmMetricsGet(&get), nvml::kSuccess);
  EXPECT_EQ(call.nvmlShutdown(), nvml::kSuccess);
  unsigned error = 0;
  power(old, &error);
  EXPECT_EQ(error, nvml::kUninitialized);
  ASSERT_EQ(call.nvmlInit_v2(), nvml::kSuccess);
  power(old, &error);
  EXPECT_EQ(error, nvml::kInvalidArgument);
  EXPECT_EQ(violations(),
            "GPM samples less than 100 ms apart\n"
            "nvmlShutdown before nvmlGpmSampleFree\n"
            "nvmlDeviceGetPowerUsage without nvmlInit_v2\n"
            "nvmlDeviceGetPowerUsage with a handle of an earlier nvmlInit_v2\n");
  EXPECT_EQ(symbol<decltype(fake_nvml_calls)>(library_, "fake_nvml_calls")("nvmlDeviceGetPowerUsage"), 2U);
}

}  // namespace
}  // namespace gpumeter::nvidia
