#include "collectors/nccl/files/inspector.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/fakes/nccl_files.hpp"

namespace gpumeter::nccl {
namespace {

const std::string kName = "nccl_inspector_metrics_c2000000-0000-4000-8000-000000000000.prom";
const std::string kLine =
    "nccl_bus_bandwidth_gbs{collective=\"AllReduce\",message_size=\"1-2MB\",n_nodes=\"1\"} 200\n";
const std::string kGpu = "gpu=\"0\",uuid=\"GPU-c2000000-0000-4000-8000-000000000000\"";
const std::string kRun = ",run=\"train.service\",user=\"ann\"";
const std::string kAllReduce = ",op=\"all_reduce\",size=\"1MiB-16MiB\",scope=\"node\"} ";

class NcclInspector : public testing::Test, protected FilesBench {
 protected:
  bool look(double now) { return inspector_.look(owners(), at(now)); }
  std::string page() { return FilesBench::page(inspector_); }
  std::string states() const { return FilesBench::states(inspector_); }

  Inspector inspector_{{tree.path(), std::chrono::seconds(30)}, say()};
};

TEST_F(NcclInspector, JoinsAFileToItsGpuAndRun) {
  write(kName, fixture("inspector_v5.1.prom"), 0);
  EXPECT_FALSE(look(5));
  const auto line = [](const std::string& op, const std::string& size, const std::string& scope) {
    return "{" + kGpu + kRun + ",op=\"" + op + "\",size=\"" + size + "\",scope=\"" + scope + "\"} ";
  };
  const std::string all = line("all_reduce", "4GiB and more", "node");
  const std::string receive = line("receive", "1MiB-16MiB", "node");
  const std::string scatter = line("reduce_scatter", "16MiB-256MiB", "network");
  const std::string small = line("send", "1MiB-16MiB", "node");
  const std::string large = line("send", "256MiB-4GiB", "node");
  const std::string bandwidth = "ml_nccl_bus_bandwidth_bytes_per_second";
  const std::string duration = "ml_nccl_operation_duration_seconds";
  EXPECT_EQ(page(), bandwidth + all + "678263000000\n" +                                      //
                        bandwidth + receive + "19239600000\n" +                               //
                        bandwidth + scatter + "44118100000\n" +                               //
                        bandwidth + small + "19163400000\n" +                                 //
                        bandwidth + large + "464900000000\n" +                                //
                        "ml_nccl_dump_timestamp_seconds{" + kGpu + kRun + "} 1790000000\n" +  //
                        duration + all + "0.009498\n" +                                       //
                        duration + receive + "0.000093\n" +                                   //
                        duration + scatter + "0.104164\n" +                                   //
                        duration + small + "0.000093\n" +                                     //
                        duration + large + "0.001155\n");
  EXPECT_EQ(states(), "read=1");
  EXPECT_EQ(said, "");
}

TEST_F(NcclInspector, TheRunIsTheOneThatTheJobReports) {
  write(kName, kLine, 0);
  run = RunLabels{"ann", "bert"};
  look(5);
  EXPECT_EQ(page(), "ml_nccl_bus_bandwidth_bytes_per_second{" + kGpu + ",run=\"bert\",user=\"ann\"" +
                        kAllReduce + "200000000000\n" + "ml_nccl_dump_timestamp_seconds{" + kGpu +
                        ",run=\"bert\",user=\"ann\"} 1790000000\n");
}

TEST_F(NcclInspector, AMigInstanceIsItsPartition) {
  partitions = {{{"GPU-c2000000-0000-4000-8000-000000000000", "1g.18gb:7"},
                 "MIG-d2000000-0000-5000-8000-000000000001",
                 "7",
                 "0"}};
  write("nccl_inspector_metrics_d2000000-0000-5000-8000-000000000001.prom", kLine, 0);
  look(5);
  EXPECT_NE(page().find("{" + kGpu + ",partition=\"1g.18gb:7\"" + kRun + kAllReduce + "200000000000\n"),
            std::string::npos);
}

// HIP's UUID holds the letters of the card's unique_id.
TEST_F(NcclInspector, AnAmdCardIsFoundByItsLetters) {
  uses.clear();
  put_on_gpu(::geteuid(), "GPU-00c0ffee00c0ff05");
  write("nccl_inspector_metrics_30306330-6666-6565-3030-633066663035.prom", kLine, 0);
  look(5);
  EXPECT_NE(page().find("uuid=\"GPU-00c0ffee00c0ff05\""), std::string::npos);
}

TEST_F(NcclInspector, ValuesLeaveAfterThreeIntervals) {
  write(kName, kLine, 0);
  look(90);
  EXPECT_NE(page(), "");
  look(90.5);
  EXPECT_EQ(page(), "");
  EXPECT_EQ(states(), "stale=1");
}

// Inspector truncates the file and writes it line by line: empty, half a line, or younger than a second.
TEST_F(NcclInspector, ATornFileKeepsTheValuesBeforeIt) {
  write(kName, kLine, 0);
  look(5);
  const std::string before = page();
  for (const std::string& torn : {std::string(), kLine.substr(0, 40), kLine + kLine.substr(0, 9)}) {
    write(kName, torn, 30);
    EXPECT_TRUE(look(40));
    EXPECT_EQ(page(), before);
    EXPECT_EQ(states(), "torn=1");
  }
  write(kName, kLine, 40);
  EXPECT_TRUE(look(40.5));
  EXPECT_EQ(page(), before);
  EXPECT_FALSE(look(42));
  EXPECT_NE(page(), before);  // its time
  EXPECT_EQ(said, "");
}

TEST_F(NcclInspector, ATornFileDoesNotKeepStaleValues) {
  write(kName, kLine, 0);
  look(5);
  write(kName, "", 80);
  look(95);
  EXPECT_EQ(page(), "");
}

TEST_F(NcclInspector, AFileOfAUserWithoutAProcessOnTheGpuIsForeign) {
  uses.clear();
  put_on_gpu(::geteuid() + 1, "GPU-c2000000-0000-4000-8000-000000000000");
  put_on_gpu(::geteuid(), "GPU-c2000000-0000-4000-8000-000000000001");
  write(kName, kLine, 0);
  look(5);
  EXPECT_EQ(page(), "");
  EXPECT_EQ(states(), "foreign=1");
}

TEST_F(NcclInspector, ReadsOnlyTheConfiguredUsers) {
  allowed = {"bob"};
  write(kName, kLine, 0);
  look(5);
  EXPECT_EQ(states(), "foreign=1");
  allowed = {"ann"};
  look(6);
  EXPECT_EQ(states(), "read=1");
}

TEST_F(NcclInspector, UnknownGpusAndOtherNames) {
  write("nccl_inspector_metrics_e2000000-0000-4000-8000-000000000000.prom", kLine, 0);
  write("nccl_inspector_metrics_C2000000-0000-4000-8000-000000000000.prom", kLine,
        0);  // not Inspector's spelling
  write("nccl_inspector_metrics_.prom", kLine, 0);
  write("host-pid7.log", "{}", 0);
  look(5);
  EXPECT_EQ(page(), "");
  EXPECT_EQ(states(), "unknown_gpu=1");
}

TEST_F(NcclInspector, FollowsNoLinksAndReadsNoPipes) {
  tree.write("elsewhere", kLine);
  tree.write(kName, "-> elsewhere");
  look(5);
  EXPECT_EQ(states(), "invalid=1");
  EXPECT_EQ(said, kName + ": is no plain file\n");
  tree.remove(kName);
  std::filesystem::create_hard_link(tree / "elsewhere", tree / kName);
  look(6);
  EXPECT_EQ(said, kName + ": is no plain file\n" + kName + ": has more than one name\n");
  tree.remove(kName);
  ASSERT_EQ(::mkfifo((tree / kName).c_str(), 0600), 0);
  look(7);
  EXPECT_EQ(states(), "invalid=1");
  EXPECT_EQ(page(), "");
}

TEST_F(NcclInspector, ALargeFileIsRefused) {
  write(kName, std::string(Inspector::kMostBytes + 1, '\n'), 0);
  look(5);
  EXPECT_EQ(said, kName + ": has 4194305 bytes, 4194304 at the most\n");
}

TEST_F(NcclInspector, ABadLineCostsNothingElse) {
  uses.clear();
  put_on_gpu(::geteuid(), "GPU-c2000000-0000-4000-8000-000000000000");
  put_on_gpu(::geteuid(), "GPU-c2000000-0000-4000-8000-000000000001");
  write(kName, kLine + "nonsense\n", 0);
  write("nccl_inspector_metrics_c2000000-0000-4000-8000-000000000001.prom", kLine, 0);
  look(5);
  look(6);
  EXPECT_EQ(said, kName + ": line 2: is no sample of a metric\n");
  EXPECT_EQ(states(), "read=1 invalid=1");
  const std::string text = page();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4);
  write(kName, kLine, 10);
  look(15);
  EXPECT_EQ(said, kName + ": line 2: is no sample of a metric\n" + kName + ": \n");
  EXPECT_EQ(states(), "read=2");
}

TEST_F(NcclInspector, ARemovedFileLeavesThePage) {
  write(kName, kLine, 0);
  look(5);
  tree.remove(kName);
  look(6);
  EXPECT_EQ(page(), "");
  EXPECT_EQ(states(), "");
}

TEST(NcclInspectorFolder, AMissingFolderIsEmptyAndAnUnreadableOneIsAnError) {
  FilesBench bench;
  Inspector missing({bench.tree / "none"}, bench.say());
  EXPECT_FALSE(missing.look(bench.owners(), FilesBench::at(0)));
  EXPECT_EQ(bench.said, "");
  bench.tree.write("file", "");
  Inspector file({bench.tree / "file"}, bench.say());
  file.look(bench.owners(), FilesBench::at(0));
  EXPECT_EQ(bench.said, "file: " + bench.tree.path() + "/file: Not a directory\n");
}

// The attack: files that look like those of GPUs which the machine does not have.
TEST_F(NcclInspector, FilesOfUnknownGpusTakeNoPlaceOfAGpu) {
  for (int gpu = 10'000; gpu < 13'000; ++gpu) {
    write("nccl_inspector_metrics_c2000000-0000-4000-8000-0000000" + std::to_string(gpu) + ".prom", kLine, 0);
  }
  write(kName, kLine, 0);
  EXPECT_FALSE(look(5));
  EXPECT_EQ(states(), "read=1 unknown_gpu=511");
}

}  // namespace
}  // namespace gpumeter::nccl
