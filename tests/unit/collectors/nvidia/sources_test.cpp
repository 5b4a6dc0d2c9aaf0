#include "collectors/nvidia/sources.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "collectors/api/catalog.hpp"
#include "collectors/nvidia/readers.hpp"
#include "tests/fakes/nvidia_gpu.hpp"

namespace gpumeter::nvidia {
namespace {

TEST(Growth, IsNothingAtFirstAndAfterAReset) {
  Growth growth;
  EXPECT_EQ(growth.of(100), 0);
  EXPECT_EQ(growth.of(130), 30);
  EXPECT_EQ(growth.of(130), 0);
  EXPECT_EQ(growth.of(20), 0);
  EXPECT_EQ(growth.of(25), 5);
  growth.restart();
  EXPECT_EQ(growth.of(1000), 0);
}

// GPUs that share the host's memory.
constexpr auto kMeminfo = "MemTotal:  1000 kB\nMemFree:  100 kB\nMemAvailable:  400 kB\n";

constexpr auto kPage =
    "gpu_memory_free_bytes{memory=\"unified\"} 409600\n"
    "gpu_memory_size_bytes{memory=\"unified\"} 1024000\n"
    "gpu_memory_used_bytes{memory=\"unified\"} 614400\n";

/// The lines of memory and of the PCIe link of a GPU with these keys.
std::string page_of(const std::string& keys, const std::vector<std::string>& lacking = {},
                    const DeviceInfo& info = gpu_of("GPU-0")) {
  const Tree host({{"meminfo", kMeminfo}});
  FakeDriver driver("devices: [{uuid: GPU-0, temperature: {gpu: 50}, " + keys + "}]", lacking);
  SampledPage page(table_device({driver.library(), false, host.path()}));
  driver.set_time(0);
  page.attach(info);
  for (const Tier tier : kTiers) page.pass(tier);
  return lines_of(page.text(), {"gpu_memory", "gpu_pcie_link", "gpu_fan"});
}

TEST(NvidiaUnifiedMemory, IsTheHostsWhereNvmlKnowsNone) { EXPECT_EQ(page_of(""), kPage); }

TEST(NvidiaUnifiedMemory, ALibraryWithTheFormerCallAloneIsEnough) {
  EXPECT_EQ(page_of("", {"nvmlDeviceGetMemoryInfo_v2"}), kPage);
}

// The driver returns these numbers although the parts do not exist.
TEST(NvidiaUnifiedMemory, HasNoPcieLinkMemoryClockMemoryControllerOrFan) {
  EXPECT_EQ(
      page_of(
          "pcie: {generation: 1, max_generation: 1, width: 1, max_width: 1}, fans: [{percent: 0, rpm: 0}], "
          "utilization: {gpu: 10, memory: 0}"),
      kPage);
}

TEST(NvidiaUnifiedMemory, IsNeverNextToVram) {
  EXPECT_EQ(page_of("memory: {total: 100, used: 40, free: 60}"),
            "gpu_memory_free_bytes{memory=\"vram\"} 60\n"
            "gpu_memory_reserved_bytes{memory=\"vram\"} 0\n"
            "gpu_memory_size_bytes{memory=\"vram\"} 100\n"
            "gpu_memory_used_bytes{memory=\"vram\"} 40\n");
}

TEST(NvidiaUnifiedMemory, AFailingCallIsNoProof) {
  EXPECT_EQ(page_of("errors: {nvmlDeviceGetMemoryInfo: {error: no_permission}, "
                    "nvmlDeviceGetMemoryInfo_v2: {error: no_permission}}"),
            "");
}

// Grace: the memory is the GPU's, and a NUMA node of the host.
TEST(NvidiaUnifiedMemory, AGpuWhoseMemoryIsANumaNodeHasItsOwn) {
  DeviceInfo grace = gpu_of("GPU-0");
  grace.memory_numa_node = 1;
  EXPECT_EQ(page_of("", {}, grace), "");
}

TEST(NvidiaUnifiedMemory, LeavesThePageWhenTheFileIsGoneOrWrong) {
  const Tree host({{"meminfo", kMeminfo}});
  FakeDriver driver("devices: [{uuid: GPU-0, temperature: {gpu: 50}}]");
  SampledPage page(table_device({driver.library(), false, host.path()}));
  driver.set_time(0);
  page.attach(gpu_of("GPU-0"));
  page.pass(Tier::normal);
  EXPECT_EQ(lines_of(page.text(), {"gpu_memory"}), kPage);
  host.write("meminfo", "MemTotal:  1000 kB\n");
  page.pass(Tier::normal);
  EXPECT_EQ(lines_of(page.text(), {"gpu_memory"}), "");
}

TEST(FieldValue, IsReadByTheTypeThatStandsBesideIt) {
  EXPECT_EQ(number_of({.as_double = 0.25}, nvml::ValueType::real), 0.25);
  EXPECT_EQ(number_of({.as_uint = 4'000'000'000U}, nvml::ValueType::uint), 4e9);
  EXPECT_EQ(number_of({.as_ulong = 1ULL << 40}, nvml::ValueType::ulong), 0x1p40);
  EXPECT_EQ(number_of({.as_ulong = 1ULL << 40}, nvml::ValueType::ulonglong), 0x1p40);
  EXPECT_EQ(number_of({.as_longlong = -5}, nvml::ValueType::longlong), -5);
  EXPECT_EQ(number_of({.as_int = -2}, nvml::ValueType::sint), -2);
  EXPECT_EQ(number_of({.as_ushort = 65535}, nvml::ValueType::ushort), 65535);
  EXPECT_EQ(number_of({.as_ulong = 7}, static_cast<nvml::ValueType>(99)), 7);
}

TEST(FieldValue, ANarrowTypeIgnoresWhatIsAboveIt) {
  nvml::Value value{.as_ulong = 0xFFFF'FFFF'0000'0003};
  EXPECT_EQ(number_of(value, nvml::ValueType::uint), 3);
  EXPECT_EQ(number_of(value, nvml::ValueType::ushort), 3);
}

TEST(FieldArgument, ComesOutOfItsNumberAsItWentIn) {
  using readers::packed, readers::unpacked;
  const auto back = unpacked(packed({274, Tier::slow, nvml::kAllLinks, 5}));
  EXPECT_EQ(back.field, 274U);
  EXPECT_EQ(back.tier, Tier::slow);
  EXPECT_EQ(back.scope, nvml::kAllLinks);
  EXPECT_EQ(back.holds, 5U);
}

TEST(FieldArgument, AFieldIsAskedForInTheTierOfItsRow) {
  MetricRow<NvidiaContext> row{&catalog::power, {}, field("a", 185, Tier::fast), 1, Tier::fast};
  EXPECT_TRUE(in_its_tier(row));
  row.tier = Tier::slow;
  EXPECT_FALSE(in_its_tier(row));
  row.source = field_is("b", 230, Tier::slow, 0);
  EXPECT_TRUE(in_its_tier(row));
  row.source = wide_field("c", 197, Tier::fast);
  EXPECT_FALSE(in_its_tier(row));
  row.source = {call<&F::nvmlDeviceGetPowerUsage>, "d"};
  EXPECT_TRUE(in_its_tier(row));
}

class Batch : public testing::Test {
 protected:
  void play(const std::string& scenario) {
    driver_.emplace(scenario);
    driver_->set_time(0);
    gpu_ = *find_gpu(*NvmlSession::shared(driver_->library()), "GPU-0");
  }

  std::optional<FakeDriver> driver_;
  NvmlCaller gpu_;
};

TEST_F(Batch, IsOneCallAPassWhoeverAsks) {
  play("devices: [{uuid: GPU-0, fields: {82: {rate: 1, from: 50}, 185: 7000, 138: {scopes: {all: 12}}}}]");
  FieldBatch batch;
  const int memory = batch.add(82, 0), power = batch.add(185, 0), links = batch.add(138, nvml::kAllLinks);
  EXPECT_EQ(batch.read(gpu_, memory).value, 50);
  driver_->set_time(3);
  EXPECT_EQ(batch.read(gpu_, power).value, 7000);
  EXPECT_EQ(batch.read(gpu_, memory).value, 50);
  EXPECT_EQ(batch.read(gpu_, links).value, 12);
  EXPECT_EQ(driver_->calls("nvmlDeviceGetFieldValues"), 1U);
  batch.begin_pass();
  EXPECT_EQ(batch.read(gpu_, memory).value, 53);
  EXPECT_EQ(driver_->calls("nvmlDeviceGetFieldValues"), 2U);
}

TEST_F(Batch, AFieldsTroubleIsItsOwnAndTheCallsIsAll) {
  play(R"(
devices: [{uuid: GPU-0, fields: {82: 50, 83: {error: no_permission}},
           errors: {nvmlDeviceGetFieldValues: {steps: [[0, ok], [5, {error: unknown}]]}}}]
)");
  FieldBatch batch;
  const int memory = batch.add(82, 0), energy = batch.add(83, 0), none = batch.add(84, 0);
  EXPECT_EQ(batch.read(gpu_, memory).status, ReadStatus::ok);
  EXPECT_EQ(batch.read(gpu_, energy).status, ReadStatus::denied);
  EXPECT_EQ(batch.read(gpu_, none).status, ReadStatus::unsupported);
  driver_->set_time(5);
  batch.begin_pass();
  EXPECT_EQ(batch.read(gpu_, memory).status, ReadStatus::failed);
  EXPECT_FALSE(gpu_.is_lost());
}

TEST_F(Batch, AFieldThatSaysThatTheGpuIsLostIsBelieved) {
  play("devices: [{uuid: GPU-0, fields: {82: {error: gpu_is_lost}}}]");
  FieldBatch batch;
  EXPECT_EQ(batch.read(gpu_, batch.add(82, 0)).status, ReadStatus::gone);
  EXPECT_TRUE(gpu_.is_lost());
}

TEST_F(Batch, OneFieldByItselfSaysItsType) {
  play("devices: [{uuid: GPU-0, fields: {197: {value: 5, type: ulonglong}, 198: {value: 6, type: uint}}}]");
  EXPECT_EQ(read_field(gpu_, 197, 0).type, nvml::ValueType::ulonglong);
  EXPECT_EQ(read_field(gpu_, 198, 0).type, nvml::ValueType::uint);
  EXPECT_EQ(read_field(gpu_, 198, 0).sample.value, 6);
  EXPECT_EQ(read_field(gpu_, 199, 0).sample.status, ReadStatus::unsupported);
}

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

TEST_F(Buffer, MeasuresItsPeriodByTheDriversTimestamps) {
  play("500");
  EXPECT_EQ(buffer_.period().status, ReadStatus::unsupported);
  run(1, 2);
  EXPECT_NEAR(buffer_.period().value, 0.02, kTiny);
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

// Sources that answer UNKNOWN when the GPU is opened are neither lost nor retried forever.
std::string scenario(const std::string& keys) {
  return "devices: [{uuid: GPU-0, temperature: {gpu: 50}, " + keys + "}]";
}

constexpr auto kBanks = "remapped_rows: {banks: {max: 9, high: 0, partial: 0, low: 0, none: 0}}, errors: ";

// The header lists only SUCCESS and UNKNOWN, so a GPU without the histogram answers UNKNOWN.
TEST(Unsettled, AHistogramThatIsUnknownForEverIsLeftAlone) {
  FakeDriver driver(scenario(std::string(kBanks) + "{nvmlDeviceGetRowRemapperHistogram: {error: unknown}}"));
  NvidiaGpu gpu(driver);
  gpu.attach().sampled();
  EXPECT_EQ(gpu.run_and_bind(0, 6), 1);  // without its rows
  EXPECT_EQ(gpu.lines({"gpu_row_remap"}), "");
  const auto asked = driver.calls("nvmlDeviceGetRowRemapperHistogram");
  const auto errors = gpu.page().errors(ReadStatus::failed);
  EXPECT_EQ(gpu.run_and_bind(7, 600), 0);
  for (int minute = 0; minute < 10; ++minute) gpu.pass(Tier::slow, 600 + minute * 60, 60);
  EXPECT_EQ(gpu.page().errors(ReadStatus::failed), errors);
  EXPECT_LE(driver.calls("nvmlDeviceGetRowRemapperHistogram") - asked, 40U);  // each row, ever more rarely
}

TEST(Unsettled, ASourceThatAnswersLaterIsOnThePage) {
  FakeDriver driver(
      scenario(std::string(kBanks) +
               "{nvmlDeviceGetRowRemapperHistogram: {steps: [[0, {error: unknown}], [20, ok]]}}"));
  NvidiaGpu gpu(driver);
  gpu.attach().sampled();
  EXPECT_EQ(gpu.run_and_bind(0, 60), 2);  // without the rows, then with them
  EXPECT_EQ(gpu.lines({"gpu_row_remap_banks{availability=\"max"}),
            "gpu_row_remap_banks{availability=\"max\"} 9\n");
}

TEST(Unsettled, TheNextSourceOfTheSeriesHasItsTurn) {
  FakeDriver driver(scenario("power: {draw: 100 W, energy: {rate: 100000}}, fields: {83: {error: unknown}}"));
  NvidiaGpu gpu(driver);
  gpu.attach().sampled();
  EXPECT_EQ(gpu.lines({"gpu_energy"}), "");
  EXPECT_EQ(gpu.run_and_bind(0, 20), 1);
  EXPECT_EQ(gpu.lines({"gpu_energy"}), "gpu_energy_joules_total 2000\n");
}

TEST(Unsettled, OneThatAnswersAtTheNextLookStays) {
  FakeDriver driver(scenario("fields: {83: {steps: [[0, {error: timeout}], [1, 5000]]}}"));
  NvidiaGpu gpu(driver);
  gpu.attach().sampled();
  EXPECT_EQ(gpu.run_and_bind(0, 20), 0);
  EXPECT_EQ(gpu.lines({"gpu_energy"}), "gpu_energy_joules_total 5\n");
}

TEST(Unsettled, PerformanceMetricsThatFailAtAttachAreFoundLater) {
  for (const std::string function : {"nvmlGpmQueryDeviceSupport", "nvmlGpmSampleAlloc", "nvmlGpmSampleGet"}) {
    FakeDriver driver(scenario("gpm: {supported: yes, metrics: {2: 50, 3: 25}}") + "\nerrors: {" + function +
                      ": {steps: [[0, {error: unknown}], [6, ok]]}}");
    NvidiaGpu gpu(driver);
    gpu.attach().sampled();
    EXPECT_EQ(gpu.lines({"gpu_compute"}), "") << function;
    EXPECT_EQ(gpu.run_and_bind(0, 20), 1) << function;
    EXPECT_EQ(gpu.lines({"gpu_compute_active_ratio", "gpu_compute_occupancy_ratio"}),
              "gpu_compute_active_ratio 0.5\ngpu_compute_occupancy_ratio 0.25\n")
        << function;
    EXPECT_EQ(driver.open().gpm_samples, 2U) << function;
  }
}

TEST(Unsettled, SampleBuffersThatFailAtAttachAreFoundLater) {
  FakeDriver driver(scenario(
      R"(utilization: {gpu: 40, memory: 0}, samples: {gpu: {period_ms: 100, capacity: 120, value: 80}},
    errors: {nvmlDeviceGetSamples: {steps: [[0, {error: unknown}], [6, ok]]}})"));
  NvidiaGpu gpu(driver);
  gpu.attach().sampled();
  gpu.run_and_bind(0, 20);
  EXPECT_EQ(gpu.lines({"gpu_utilization_max"}), "gpu_utilization_max_ratio{window=\"1m\"} 0.8\n");
}

TEST(Unsettled, EventsInstancesAndLimitsThatFailAtAttachAreFoundLater) {
  FakeDriver driver(
      scenario(R"(supported_events: [xid], fields: {193: -8, 194: {steps: [[0, {error: unknown}], [6, -2]]}},
    mig: {mode: enabled, mode_pending: enabled, most: 1, instances: [{gi: 3, ci: 0, uuid: MIG-a, name: A MIG 1g.10gb}]},
    errors: {nvmlDeviceGetSupportedEventTypes: {steps: [[0, {error: timeout}], [6, ok]]},
             nvmlDeviceGetMigMode: {steps: [[0, {error: unknown}], [6, ok]]}})"));
  NvidiaGpu gpu(driver);
  gpu.attach().sampled();
  EXPECT_EQ(gpu.lines({"gpu_partition_info"}), "");
  gpu.run_and_bind(0, 20);
  EXPECT_NE(gpu.lines({"gpu_partition_info"}), "");
  EXPECT_EQ(gpu.page().has_more(std::chrono::hours(1)), false);
}

// All rows are bound, so that the daemon notices the unread GPU and opens it again when it answers.
TEST(Unsettled, AGpuWhoseEveryCallFailsIsUnread) {
  FakeDriver driver(
      "devices: [{uuid: GPU-0, power: {draw: {error: unknown}}, temperature: {gpu: {error: timeout}}}]");
  NvidiaGpu gpu(driver);
  gpu.attach();
  EXPECT_EQ(gpu.pass(Tier::fast, 1), PassOutcome::unread);
}

}  // namespace
}  // namespace gpumeter::nvidia
