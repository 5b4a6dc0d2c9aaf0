#include "collectors/jobs/benchmarks/results.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "base/text.hpp"
#include "exporter/store/store.hpp"
#include "exporter/text/view.hpp"

namespace gpumeter::jobs::benchmarks {
namespace {

std::string sorted(std::string_view text) {
  std::multiset<std::string_view> lines;
  while (!text.empty()) lines.insert(take_until(text, '\n'));
  std::string joined;
  for (const std::string_view line : lines) joined += std::string(line) + '\n';
  return joined;
}

/// A machine with two GPUs, to which benchmarks send messages.
class BenchmarkResults : public testing::Test {
 protected:
  void SetUp() override {
    add("GPU-a", "0000:01:00.0");
    add("GPU-b", "0000:41:00.0");
  }
  void add(std::string uuid, std::string pci) {
    DeviceIdentity device;
    device.index = static_cast<unsigned>(devices_.size());
    device.info.uuid = std::move(uuid);
    device.info.pci_address = std::move(pci);
    devices_.push_back(device);
  }
  void send(std::string_view payload) {
    results_.receive(payload, devices_, std::chrono::seconds(2000),
                     [this](Refusal refusal) { dropped_ += std::string(to_string(refusal)) + ' '; });
  }
  std::string dropped() { return std::exchange(dropped_, {}); }
  /// The series, sorted.
  std::string page(const Results& results) {
    Store store;
    Series series(store.attach(), {});
    series.show(results, devices_, std::chrono::seconds(1));
    const std::string text = TextView(store).render(Format::text, {}).text;
    std::string lines;
    for (std::string_view rest = text; !rest.empty();) {
      const std::string_view line = take_until(rest, '\n');
      if (!line.starts_with('#')) lines += std::string(line) + '\n';
    }
    return sorted(lines);
  }
  std::string page() { return page(results_); }

  std::vector<DeviceIdentity> devices_;
  Results results_;
  std::string dropped_;
};

constexpr std::string_view kRun =
    "gpu.benchmark.flops:1.23e15|g|#uuid:GPU-a,dtype:bf16,backend:cublas\n"
    "gpu.benchmark.memory_bandwidth:3e12|g|#uuid:GPU-a,operation:triad\n"
    "gpu.benchmark.transfer:5e10|g|#uuid:GPU-a,direction:host_to_device\n"
    "gpu.benchmark.failed:0|g|#uuid:GPU-a\n"
    "gpu.benchmark.timestamp:1500|g|#uuid:GPU-a\n";
constexpr std::string_view kRunOnPage =
    "gpu_benchmark_flops{gpu=\"0\",uuid=\"GPU-a\",dtype=\"bf16\",backend=\"cublas\"} 1.23e+15\n"
    "gpu_benchmark_memory_bandwidth_bytes_per_second{gpu=\"0\",uuid=\"GPU-a\",operation=\"triad\"} 3e+12\n"
    "gpu_benchmark_transfer_bytes_per_second{gpu=\"0\",uuid=\"GPU-a\",direction=\"host_to_device\"} 5e+10\n"
    "gpu_benchmark_failed{gpu=\"0\",uuid=\"GPU-a\"} 0\n"
    "gpu_benchmark_timestamp_seconds{gpu=\"0\",uuid=\"GPU-a\"} 1500\n";

TEST_F(BenchmarkResults, AMessageIsOnThePage) {
  send(kRun);
  EXPECT_EQ(page(), sorted(kRunOnPage));
  EXPECT_EQ(dropped(), "");
}

TEST_F(BenchmarkResults, AGpuIsNamedByUuidAddressOrIndex) {
  send(
      "gpu.benchmark.result:7|g|#pci:0000:41:00.0,suite:s,test:by address,unit:seconds\n"
      "gpu.benchmark.result:8|g|#gpu:0,suite:s,test:by index,unit:seconds\n");
  EXPECT_EQ(
      page(),
      "gpu_benchmark_result{gpu=\"0\",uuid=\"GPU-a\",suite=\"s\",test=\"by index\",unit=\"seconds\"} 8\n"
      "gpu_benchmark_result{gpu=\"1\",uuid=\"GPU-b\",suite=\"s\",test=\"by address\",unit=\"seconds\"} 7\n"
      "gpu_benchmark_timestamp_seconds{gpu=\"0\",uuid=\"GPU-a\"} 2000\n"
      "gpu_benchmark_timestamp_seconds{gpu=\"1\",uuid=\"GPU-b\"} 2000\n");
}

TEST_F(BenchmarkResults, EveryBadLineIsRefusedAloneWithItsReason) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"gpu.benchmark.flops:1|g|#uuid:GPU-c,dtype:bf16,backend:x", "device"},
      {"gpu.benchmark.flops:1|g|#pci:0000:02:00.0,dtype:bf16,backend:x", "device"},
      {"gpu.benchmark.flops:1|g|#gpu:2,dtype:bf16,backend:x", "device"},
      {"gpu.benchmark.flops:1|g|#gpu:0x0,dtype:bf16,backend:x", "device"},
      {"gpu.benchmark.flops:1|g|#dtype:bf16,backend:x", "device"},
      {"gpu.benchmark.flops:1|g|#gpu:0,dtype:fp63,backend:x", "bad_label"},
      {"gpu.benchmark.flops:1|g|#gpu:0,dtype:bf16", "bad_label"},
      {"gpu.benchmark.memory_bandwidth:1|g|#gpu:0,operation:scale", "bad_label"},
      {"gpu.benchmark.transfer:1|g|#gpu:0,direction:up", "bad_label"},
      {"gpu.benchmark.result:1|g|#gpu:0,suite:s,test:t", "bad_label"},
      {"gpu.benchmark.flops:-1|g|#gpu:0,dtype:bf16,backend:x", "bad_value"},
      {"gpu.benchmark.flops:1:2|g|#gpu:0,dtype:bf16,backend:x", "bad_value"},
      {"gpu.benchmark.flops:nan|g|#gpu:0,dtype:bf16,backend:x", "bad_value"},
      {"gpu.benchmark.failed:0.5|g|#gpu:0", "bad_value"},
      {"gpu.benchmark.timestamp:6000|g|#gpu:0", "bad_timestamp"},
      {"gpu.benchmark.flops:1|c|#gpu:0,dtype:bf16,backend:x", "wrong_type"},
      {"gpu.benchmark.score:1|g|#gpu:0", "unknown_metric"},
      {"gpu.benchmark.flops", "malformed"},
  };
  send(kRun);
  for (const auto& [line, reason] : cases) {
    send(line);
    EXPECT_EQ(dropped(), std::string(reason) + ' ') << line;
  }
  EXPECT_EQ(page(), sorted(kRunOnPage));
  send("gpu.benchmark.nosuch:1|g|#gpu:1\ngpu.benchmark.failed:1|g|#gpu:1\n");
  EXPECT_EQ(dropped(), "unknown_metric ");
  EXPECT_NE(page().find("gpu_benchmark_failed{gpu=\"1\",uuid=\"GPU-b\"} 1\n"), std::string::npos);
}

TEST_F(BenchmarkResults, AMessageReplacesTheWholeRunBeforeIt) {
  send(kRun);
  send(
      "gpu.benchmark.memory_bandwidth:2e12|g|#gpu:0,operation:copy\n"
      "gpu.benchmark.timestamp:1600|g|#gpu:0\n");
  EXPECT_EQ(
      page(),
      "gpu_benchmark_memory_bandwidth_bytes_per_second{gpu=\"0\",uuid=\"GPU-a\",operation=\"copy\"} 2e+12\n"
      "gpu_benchmark_timestamp_seconds{gpu=\"0\",uuid=\"GPU-a\"} 1600\n");
}

TEST_F(BenchmarkResults, OtherSuitesAndOtherGpusStay) {
  send(kRun);
  send(
      "gpu.benchmark.flops:2e12|g|#gpu:0,dtype:fp32,backend:opencl,suite:clpeak\n"
      "gpu.benchmark.flops:9e14|g|#gpu:0,dtype:bf16,backend:cublas,suite:clpeak\n"
      "gpu.benchmark.timestamp:1400|g|#gpu:0,suite:clpeak\n");
  send("gpu.benchmark.failed:0|g|#gpu:1\ngpu.benchmark.timestamp:1700|g|#gpu:1\n");
  std::string expected(kRunOnPage);  // clpeak's bf16 is older than the run's
  const std::string clpeak =
      "gpu_benchmark_flops{gpu=\"0\",uuid=\"GPU-a\",dtype=\"fp32\",backend=\"opencl\"} 2e+12\n";
  expected += clpeak + "gpu_benchmark_failed{gpu=\"1\",uuid=\"GPU-b\"} 0\n";
  expected += "gpu_benchmark_timestamp_seconds{gpu=\"1\",uuid=\"GPU-b\"} 1700\n";
  EXPECT_EQ(page(), sorted(expected));
}

TEST_F(BenchmarkResults, AFailureLeavesNoRateOfAnEarlierRun) {
  send(
      "gpu.benchmark.flops:2e12|g|#gpu:0,dtype:fp32,backend:opencl,suite:clpeak\n"
      "gpu.benchmark.result:3e-6|g|#gpu:0,suite:clpeak,test:kernel_latency,unit:seconds\n"
      "gpu.benchmark.timestamp:1400|g|#gpu:0,suite:clpeak\n");
  send(kRun);
  send(
      "gpu.benchmark.memory_bandwidth:2e12|g|#gpu:0,operation:copy\n"
      "gpu.benchmark.failed:1|g|#gpu:0\ngpu.benchmark.timestamp:1600|g|#gpu:0\n");
  EXPECT_EQ(
      page(),
      sorted("gpu_benchmark_memory_bandwidth_bytes_per_second{gpu=\"0\",uuid=\"GPU-a\",operation=\"copy\"} "
             "2e+12\n"
             "gpu_benchmark_result{gpu=\"0\",uuid=\"GPU-a\",suite=\"clpeak\",test=\"kernel_latency\",unit="
             "\"seconds\"} 3e-06\n"
             "gpu_benchmark_failed{gpu=\"0\",uuid=\"GPU-a\"} 1\n"
             "gpu_benchmark_timestamp_seconds{gpu=\"0\",uuid=\"GPU-a\"} 1600\n"));
  send(kRun);  // correct again; clpeak's rate is true again
  EXPECT_NE(page().find("dtype=\"fp32\""), std::string::npos);
  EXPECT_NE(page().find("gpu_benchmark_failed{gpu=\"0\",uuid=\"GPU-a\"} 0\n"), std::string::npos);
}

TEST_F(BenchmarkResults, ResultsOfAGpuAreBounded) {
  std::string payload;
  for (int i = 0; i < 300; ++i) {
    payload += "gpu.benchmark.result:1|g|#gpu:0,suite:s,unit:u,test:" + std::to_string(i) + '\n';
  }
  send(payload);
  EXPECT_EQ(results_.shown("GPU-a").size(), Results::kMostResults + 1);
  std::string refused;
  for (int i = 0; i < 44; ++i) refused += "series_limit ";
  EXPECT_EQ(dropped(), refused);
  send("gpu.benchmark.result:1|g|#gpu:0,suite:other,unit:u,test:t\n");
  EXPECT_EQ(dropped(), "series_limit ");
  for (int i = 0; i < 20; ++i) send("gpu.benchmark.failed:0|g|#gpu:1,suite:" + std::to_string(i));
  EXPECT_EQ(dropped(), "series_limit series_limit series_limit series_limit ");
}

TEST_F(BenchmarkResults, ADeviceThatIsNotKnownAnyMoreGivesWay) {
  for (std::size_t i = 0; i < 2 * Results::kMostDevices; ++i) {
    devices_.clear();
    add("GPU-" + std::to_string(i), "");
    send("gpu.benchmark.failed:0|g|#gpu:0");
    EXPECT_EQ(dropped(), "");
  }
  EXPECT_EQ(results_.shown("GPU-" + std::to_string(2 * Results::kMostDevices - 1)).size(), 2U);
}

TEST_F(BenchmarkResults, TheyFollowTheirGpu) {
  send(kRun);
  devices_[0].index = 7;
  devices_.pop_back();
  EXPECT_NE(page().find("gpu_benchmark_failed{gpu=\"7\",uuid=\"GPU-a\"} 0\n"), std::string::npos);
  devices_.clear();
  EXPECT_EQ(page(), "");
}

TEST_F(BenchmarkResults, ARestartChangesNothing) {
  send(kRun);
  send(
      "gpu.benchmark.result:-7.25|g|#gpu:1,suite:a b,test:\xE2\x82\xAC,unit:seconds\n"
      "gpu.benchmark.failed:1|g|#gpu:1,suite:a b\n");
  Results after;
  ASSERT_TRUE(after.restore(results_.saved()));
  EXPECT_EQ(page(after), page());
  EXPECT_EQ(after.saved(), results_.saved());
}

TEST_F(BenchmarkResults, ADamagedSectionIsRejectedWhole) {
  send(kRun);
  const std::string saved = results_.saved();
  for (const std::string_view damage :
       {"result\tgpu.benchmark.flops\tfp63\tx\t1\n", "result\tgpu.benchmark.failed\t1\n", "nonsense\n",
        "result\tgpu.benchmark.flops\tfp32\tx\tnan\n", "result\tgpu.benchmark.flops\tfp32\tx\t-1\n",
        "suite\tx\t1\t2\n", "result\tgpu.benchmark.result\ts\t\tu\t1\n"}) {
    Results after;
    EXPECT_FALSE(after.restore(saved + std::string(damage))) << damage;
    EXPECT_TRUE(after.empty());
  }
  Results after;
  const auto restored = after.restore("suite\tx\t1\t0\n");
  ASSERT_FALSE(restored);
  EXPECT_EQ(restored.error().message(), "the results of benchmarks, line 1");
}

}  // namespace
}  // namespace gpumeter::jobs::benchmarks
