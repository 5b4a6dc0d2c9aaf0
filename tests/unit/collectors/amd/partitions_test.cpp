#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <sstream>
#include <string>

#include "collectors/amd/collector.hpp"
#include "collectors/amd/kfd.hpp"
#include "tests/fakes/amd_card.hpp"
#include "tests/fakes/real_clock.hpp"
#include "tests/fakes/sampled_page.hpp"
#include "tests/fakes/tree.hpp"

namespace gpumeter::amd {
namespace {

using std::chrono::seconds;

/// An accelerator whose two compute dies are busy 30 % and 80 % of the time.
class AmdPartitionsTest : public testing::Test {
 protected:
  AmdPartitionsTest() {
    write("uevent", "DRIVER=amdgpu\nPCI_CLASS=120000\nPCI_ID=1002:74A1\n");
    write("gpu_metrics", FakeBlob(1, 8)
                             .set("num_partition", 2)
                             .set("gfx_busy_inst", 30, 0, 0)
                             .set("gfx_busy_inst", 80, 0, 1)
                             .bytes());
  }
  void write(const std::string& name, std::string_view content) {
    tree_.write("bus/pci/devices/0000:c1:00.0/" + name, content);
  }
  void divide(std::string_view compute, std::string_view memory = "NPS1\n") {
    write("current_compute_partition", compute);
    write("current_memory_partition", memory);
  }
  DeviceInfo discovered() const { return (*collector_->discover()).devices.at(0); }
  void attach() {
    if (!page_) page_.emplace(collector_->device(discovered()));
    page_->attach(discovered());
  }
  std::string partitions(seconds elapsed) {
    page_->pass(Tier::once);
    page_->pass(Tier::fast, elapsed);
    std::string lines;
    std::istringstream text(page_->text());
    for (std::string line; std::getline(text, line);) {
      if (line.starts_with("gpu_partition_")) lines += line + "\n";
    }
    return lines;
  }

  const Tree tree_{{}};
  const std::unique_ptr<Collector> collector_ = *open_amd({tree_.path(), "/proc", &kRealClock, {}});
  std::optional<SampledPage> page_;
};

TEST_F(AmdPartitionsTest, EachHasItsOwnDies) {
  divide("DPX\n");
  attach();
  EXPECT_EQ(partitions(seconds(0)),
            "gpu_partition_busy_seconds_total{partition=\"dpx:0\"} 0\n"
            "gpu_partition_busy_seconds_total{partition=\"dpx:1\"} 0\n"
            "gpu_partition_info{partition=\"dpx:0\",profile=\"dpx\",memory_profile=\"nps1\"} 1\n"
            "gpu_partition_info{partition=\"dpx:1\",profile=\"dpx\",memory_profile=\"nps1\"} 1\n"
            "gpu_partition_utilization_ratio{partition=\"dpx:0\"} 0.3\n"
            "gpu_partition_utilization_ratio{partition=\"dpx:1\"} 0.8\n");
}

TEST_F(AmdPartitionsTest, TheFirmwaresCyclesGiveTheTimeOfTheBusiestDie) {
  const auto at = [](std::uint64_t second, std::uint64_t first, std::uint64_t next, std::uint64_t third) {
    return FakeBlob(1, 8)
        .set("num_partition", 2)
        .set("firmware_timestamp", second * 100'000'000)
        .set("accumulation_counter", second * 1000)
        .set("gfx_busy_acc", first, 0, 0)
        .set("gfx_busy_acc", next, 1, 0)
        .set("gfx_busy_acc", third, 0, 1)
        .set("gfx_busy_acc", 0, 1, 1)
        .bytes();
  };
  divide("DPX\n");
  write("gpu_metrics", at(1, 0, 0, 0));
  attach();
  partitions(seconds(0));
  write("gpu_metrics", at(3, 50000, 80000, 200000));
  EXPECT_EQ(partitions(seconds(2)),
            "gpu_partition_busy_seconds_total{partition=\"dpx:0\"} 0.8\n"
            "gpu_partition_busy_seconds_total{partition=\"dpx:1\"} 2\n"
            "gpu_partition_info{partition=\"dpx:0\",profile=\"dpx\",memory_profile=\"nps1\"} 1\n"
            "gpu_partition_info{partition=\"dpx:1\",profile=\"dpx\",memory_profile=\"nps1\"} 1\n");
}

TEST_F(AmdPartitionsTest, OfTheTableThatDescribesItselfEachHasItsShareOfTheDies) {
  constexpr unsigned kDies = 40;
  constexpr unsigned kPartitions = 38;
  write("gpu_metrics", FakeAttributes()
                           .add(kPartitions, FakeAttributes::u16, {2})
                           .add(kDies, FakeAttributes::u32, {10, 20, 30, 40}, 10)
                           .bytes());
  divide("DPX\n");
  attach();
  const std::string text = partitions(seconds(0));
  EXPECT_NE(text.find("gpu_partition_utilization_ratio{partition=\"dpx:0\"} 0.2\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("gpu_partition_utilization_ratio{partition=\"dpx:1\"} 0.4\n"), std::string::npos)
      << text;
}

TEST_F(AmdPartitionsTest, AWholeCardHasNone) {
  for (const std::string_view whole : {"SPX\n", "UNKNOWN\n", ""}) {
    divide(whole);
    page_.reset();
    attach();
    EXPECT_EQ(partitions(seconds(0)), "") << whole;
  }
}

TEST_F(AmdPartitionsTest, ACardThatIsDividedAnewIsAnotherFindAndItsCountersGoOn) {
  divide("DPX\n");
  const DeviceInfo divided = discovered();
  EXPECT_EQ(divided.partitioning, "dpx/nps1");
  attach();
  partitions(seconds(0));
  partitions(seconds(10));

  divide("SPX\n");
  EXPECT_NE(discovered(), divided);  // so that the daemon attaches to it again
  attach();
  EXPECT_EQ(partitions(seconds(10)), "");

  divide("DPX\n");
  attach();
  const std::string text = partitions(seconds(0));
  EXPECT_NE(text.find("gpu_partition_busy_seconds_total{partition=\"dpx:0\"} 3\n"), std::string::npos)
      << text;
  EXPECT_NE(text.find("gpu_partition_busy_seconds_total{partition=\"dpx:1\"} 8\n"), std::string::npos)
      << text;
}

TEST(PartitionsOf, ANodeThatIsNotSeenLeavesItsPartitionWithoutFacts) {
  KfdNode last;
  last.partition = 2;
  last.compute_units = 38;
  last.render_minor = 130;
  const std::vector<AmdPartition> parts = partitions_of({"tpx", ""}, {last}, 0);
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[0].partition, (Partition{"tpx:0", {{"profile", "tpx"}}}));
  EXPECT_EQ(parts[2].partition,
            (Partition{"tpx:2", {{"profile", "tpx"}, {"compute_units", "38"}, {"minor", "130"}}}));
  EXPECT_EQ(parts[1].node, std::nullopt);
}

TEST(PartitionsOf, MoreThanThereCanBeIsNonsenseAndLeftOut) {
  EXPECT_TRUE(partitions_of({"cpx", "nps4"}, {}, 4096).empty());
}

}  // namespace
}  // namespace gpumeter::amd
