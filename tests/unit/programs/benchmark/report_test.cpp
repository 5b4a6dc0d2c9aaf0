#include "programs/benchmark/report.hpp"

#include <gtest/gtest.h>

#include "tests/fakes/tree.hpp"

namespace gpumeter::benchmark {
namespace {

Report report(double flops = 1.5e12) {
  Report made;
  made.gpu.index = "0";
  made.gpu.uuid = "GPU-1";
  made.gpu.model = "H100";
  made.gpu.driver_version = "580.95.05";
  made.timestamp = 1795395924.5;
  made.outcome.measurements = {{Quantity::flops, "bf16", "cublas", flops, 1e10, 40},
                               {Quantity::memory_bandwidth, "triad", "opencl", 3e12, 1e9, 12},
                               {Quantity::transfer, "host_to_device", "opencl", 5.4e10, 1e8, 9}};
  made.outcome.facts = {{"cublas", "120402"}};
  return made;
}

TEST(BenchmarkReportTest, Datagram) {
  EXPECT_EQ(datagram(report()),
            "gpu.benchmark.flops:1.5e+12|g|#uuid:GPU-1,dtype:bf16,backend:cublas\n"
            "gpu.benchmark.memory_bandwidth:3e+12|g|#uuid:GPU-1,operation:triad\n"
            "gpu.benchmark.transfer:5.4e+10|g|#uuid:GPU-1,direction:host_to_device\n"
            "gpu.benchmark.failed:0|g|#uuid:GPU-1\n"
            "gpu.benchmark.timestamp:1795395924.500|g|#uuid:GPU-1\n");
  Report failed = report();
  failed.status = Status::failed;
  EXPECT_EQ(datagram(failed),
            "gpu.benchmark.failed:1|g|#uuid:GPU-1\ngpu.benchmark.timestamp:1795395924.500|g|#uuid:GPU-1\n");
  for (const Status status : {Status::preempted, Status::not_measured}) {
    failed.status = status;
    EXPECT_EQ(datagram(failed), "");
  }
}

TEST(BenchmarkReportTest, AUuidThatWouldEndATagIsNotSent) {
  for (const char* uuid : {"", "GPU-1,dtype:x", "GPU-1\ngpu.benchmark.failed:0", "a|b", "a#b"}) {
    Report one = report();
    one.gpu.uuid = uuid;
    EXPECT_EQ(datagram(one), "") << uuid;
  }
}

TEST(BenchmarkReportTest, Table) {
  Report one = report();
  one.baseline_ratios = {0.87, std::nullopt};
  one.outcome.notes = {"gemm fp16: the device lacks cl_khr_fp16"};
  EXPECT_EQ(table_text({{one}}),
            "GPU 0 (GPU-1) H100: ok\n"
            "  test           kind              backend            value deviation  runs  baseline\n"
            "  matrix product bf16              cublas      1.50 TFLOPS    0.7 %    40      87 %\n"
            "  device memory  triad             opencl        3.00 TB/s    0.0 %    12          \n"
            "  transfer       host_to_device    opencl        54.0 GB/s    0.2 %     9          \n"
            "  note: gemm fp16: the device lacks cl_khr_fp16\n");
}

TEST(BenchmarkHistoryTest, TheFirstThreeRunsAreTheBaseline) {
  const Tree tree({});
  const History history(tree.path());
  const auto ratio = [&](Report one) {
    EXPECT_TRUE(history.record(one));
    return one.baseline_ratios[0];
  };
  EXPECT_EQ(ratio(report(90)), std::nullopt);
  EXPECT_EQ(ratio(report(110)), std::nullopt);
  EXPECT_EQ(ratio(report(100)), 1.0);
  EXPECT_EQ(ratio(report(80)), 0.8);
  Report failed = report(10);
  failed.status = Status::failed;
  EXPECT_EQ(ratio(failed), 0.1);
  Report new_driver = report(120);
  new_driver.gpu.driver_version = "590.1";
  EXPECT_EQ(ratio(new_driver), std::nullopt);
  EXPECT_EQ(ratio(report(100)), 1.0);  // the former key's baseline is still there
  EXPECT_EQ(history.last_run("GPU-1"), 1795395924.5);
  EXPECT_EQ(history.last_run("GPU-2"), 0);
}

TEST(BenchmarkHistoryTest, AFileOfAnotherKindIsKept) {
  const Tree tree({});
  tree.write("GPU-1.json", "not JSON");
  Report one = report();
  EXPECT_TRUE(History(tree.path()).record(one));
  EXPECT_TRUE(std::filesystem::exists(tree.path() + "/GPU-1.json.bad"));
  Report nowhere = report();
  EXPECT_FALSE(History(tree.path() + "/none").record(nowhere));
}

}  // namespace
}  // namespace gpumeter::benchmark
