#include "collectors/amd/readers/blob.hpp"

#include <gtest/gtest.h>

#include <string>

#include "collectors/amd/metrics.hpp"
#include "collectors/table/device.hpp"
#include "tests/fakes/amd_card.hpp"
#include "tests/fakes/sampled_page.hpp"
#include "tests/fakes/tree.hpp"

namespace gpumeter::amd {
namespace {

/// A card of the given PCI device with no file but gpu_metrics.
class BlobCard {
 public:
  BlobCard(std::string_view device, const std::string& bytes, Tree::Files files = {})
      : page_(std::make_unique<TableDevice<AmdContext>>(AmdContext(), amd_rows())) {
    const std::string uevent = "DRIVER=amdgpu\nPCI_CLASS=38000\nPCI_ID=1002:" + std::string(device) + "\n";
    tree_.write("0000:0c:00.0/uevent", uevent);
    for (const auto& [name, content] : files) tree_.write("0000:0c:00.0/" + std::string(name), content);
    write(bytes);
    DeviceInfo info;
    info.source = tree_ / "0000:0c:00.0";
    page_.attach(info);
    page_.pass_all();
  }

  void write(const std::string& bytes) { tree_.write("0000:0c:00.0/gpu_metrics", bytes); }
  void pass() { page_.pass(Tier::fast, std::chrono::seconds(1)); }
  std::string text(const std::vector<std::string_view>& without = {}) const { return page_.text(without); }

 private:
  const Tree tree_{{}};
  SampledPage page_;
};

FakeBlob powered(FakeBlob blob, std::string_view power, std::uint64_t energy) {
  return blob.set(power, 300).set("energy_accumulator", energy);
}

TEST(BlobReaders, EnergyIsTheHardwaresWhereItsUnitIsKnown) {
  const std::string of_hardware =
      "gpu_energy_joules_total 2\n"
      "gpu_power_max_watts{window=\"1m\"} 300\n"
      "gpu_power_min_watts{window=\"1m\"} 300\n"
      "gpu_power_watts 300\n";
  const std::string bytes = powered(FakeBlob(1, 3), "average_socket_power", 2 * 65536).bytes();
  EXPECT_EQ(BlobCard("740F", bytes).text(), of_hardware);  // MI210
  const std::string integrated =
      "gpu_energy_joules_total 0\n"
      "gpu_power_max_watts{window=\"1m\"} 300\n"
      "gpu_power_min_watts{window=\"1m\"} 300\n"
      "gpu_power_watts 300\n";
  EXPECT_EQ(BlobCard("738C", bytes).text(), integrated);  // MI100
  EXPECT_EQ(BlobCard("73BF", bytes).text(), integrated);  // Navi 21
}

TEST(BlobReaders, EnergyFrom1_4OnIsTheHardwares) {
  BlobCard card("74A1", powered(FakeBlob(1, 4), "curr_socket_power", 2 * 65536).bytes());
  card.write(powered(FakeBlob(1, 4), "curr_socket_power", 5 * 65536).bytes());
  card.pass();
  EXPECT_EQ(card.text({"gpu_power"}), "gpu_energy_joules_total 5\n");
}

TEST(BlobReaders, AnAccumulatorOfZeroIsNone) {
  BlobCard card("740F", powered(FakeBlob(1, 3), "average_socket_power", 0).bytes());
  card.pass();
  EXPECT_EQ(card.text({"gpu_power"}), "gpu_energy_joules_total 300\n");  // integrated
}

TEST(BlobReaders, TheSecondDieOfAnMi250HasNoPowerOfItsOwn) {
  const std::string none =
      powered(FakeBlob(1, 3), "average_socket_power", 0).set("average_socket_power", 0).bytes();
  const Tree::Files files = {{"hwmon/hwmon1/name", "amdgpu\n"}, {"hwmon/hwmon1/power1_average", "0\n"}};
  EXPECT_EQ(BlobCard("740C", none, files).text(), "");
  EXPECT_EQ(BlobCard("744C", none, files).text({"gpu_power_m", "gpu_energy"}), "gpu_power_watts 0\n");
}

TEST(BlobReaders, ApusTellRailsTemperaturesAndAverageClocks) {
  const BlobCard card("15BF", FakeBlob(2, 1)
                                  .set("temperature_gfx", 2500)
                                  .set("temperature_soc", 2737)
                                  .set("average_socket_power", 3401)
                                  .set("average_soc_power", 743)
                                  .set("average_gfx_power", 585)
                                  .set("average_gfx_activity", 79)
                                  .set("average_socclk_frequency", 400)
                                  .set("average_fclk_frequency", 500)
                                  .set("current_fclk", 600)
                                  .bytes());
  EXPECT_EQ(card.text(),
            "gpu_clock_hertz{clock=\"fabric\"} 6e+08\n"
            "gpu_clock_hertz{clock=\"soc\"} 4e+08\n"
            "gpu_power_rail_watts{rail=\"gpu\"} 0.585\n"
            "gpu_power_rail_watts{rail=\"soc\"} 0.743\n"
            "gpu_rail_energy_joules_total{rail=\"gpu\"} 0\n"
            "gpu_rail_energy_joules_total{rail=\"soc\"} 0\n"
            "gpu_temperature_celsius{sensor=\"core\"} 25\n"
            "gpu_temperature_celsius{sensor=\"soc\"} 27.37\n");
}

TEST(BlobReaders, LinksAreAddedUp) {
  const BlobCard card("74A1", FakeBlob(1, 7)
                                  .set("xgmi_read_data_acc", 3, 0)
                                  .set("xgmi_read_data_acc", 4, 5)
                                  .set("xgmi_write_data_acc", 5, 0)
                                  .set("xgmi_link_status", 1, 0)
                                  .set("xgmi_link_status", 0, 5)
                                  .set("xgmi_link_status", 2, 7)
                                  .set("pcie_replay_count_acc", 12)
                                  .bytes());
  EXPECT_EQ(card.text(),
            "gpu_interconnect_links_up{kind=\"xgmi\"} 1\n"
            "gpu_interconnect_links{kind=\"xgmi\"} 2\n"
            "gpu_interconnect_received_bytes_total{kind=\"xgmi\"} 7168\n"
            "gpu_interconnect_transmitted_bytes_total{kind=\"xgmi\"} 5120\n"
            "gpu_pcie_replays_total 12\n");
}

TEST(BlobReaders, EnginesAreAsBusyAsTheBusiestOfTheirKind) {
  const BlobCard mi300(
      "74A1",
      FakeBlob(1, 8).set("vcn_busy", 30, 1, 0).set("vcn_busy", 80, 3, 7).set("jpeg_busy", 5, 39, 2).bytes());
  EXPECT_EQ(mi300.text({"gpu_engine_busy"}),
            "gpu_engine_utilization_ratio{engine=\"decode\"} 0.8\n"
            "gpu_engine_utilization_ratio{engine=\"jpeg\"} 0.05\n");
  const std::string mm = FakeBlob(1, 3).set("average_mm_activity", 0).bytes();
  EXPECT_EQ(BlobCard("744C", mm).text({"gpu_engine_busy"}),
            "gpu_engine_utilization_ratio{engine=\"decode\"} 0\n");
  EXPECT_EQ(BlobCard("740F", mm).text(), "");  // a constant of MI200's driver
}

TEST(BlobReaders, UmcActivityIsTrafficFrom1_4On) {
  const BlobCard mi300("74A1",
                       FakeBlob(1, 7).set("average_umc_activity", 40).set("mem_max_bandwidth", 5300).bytes());
  EXPECT_EQ(mi300.text({"gpu_memory_controller"}),
            "gpu_memory_bandwidth_utilization_ratio 0.4\n"
            "gpu_memory_bandwidth_utilization_seconds_total 0\n"
            "gpu_peak_memory_bandwidth_bytes_per_second 5.3e+12\n");
  const BlobCard mi210("740F", FakeBlob(1, 3).set("average_umc_activity", 40).bytes());
  EXPECT_EQ(mi210.text({"gpu_memory_controller"}), "");
}

TEST(BlobReaders, ThrottleBitsOfTheChipAreAskedWhereThereAreNoOthers) {
  const std::string bytes = FakeBlob(1, 1).set("throttle_status", 1 << 2).bytes();
  EXPECT_EQ(BlobCard("73BF", bytes).text({"gpu_throttle_"}),
            "gpu_throttled{cause=\"current\"} 0\n"
            "gpu_throttled{cause=\"power\"} 0\n"
            "gpu_throttled{cause=\"reliability\"} 0\n"
            "gpu_throttled{cause=\"thermal\"} 1\n");
  EXPECT_EQ(BlobCard("7310", bytes).text(), "");  // the meaning of its bits is unknown
}

TEST(BlobReaders, ResidenciesGiveSecondsAndNoBits) {
  const auto at = [](std::uint64_t seconds, std::uint64_t ppt, std::uint64_t hbm) {
    FakeBlob blob(1, 6);
    for (const char* const name : {"prochot", "socket_thm", "vr_thm"})
      blob.set(name + std::string("_residency_acc"), 0);
    blob.set("firmware_timestamp", seconds * 100'000'000).set("accumulation_counter", seconds * 1000);
    return blob.set("ppt_residency_acc", ppt).set("hbm_thm_residency_acc", hbm).bytes();
  };
  BlobCard card("74A1", at(1, 700, 0));
  card.write(at(3, 1200, 100));
  card.pass();
  EXPECT_EQ(card.text(),
            "gpu_throttle_reason_seconds_total{cause=\"hardware\",reason=\"prochot\"} 0\n"
            "gpu_throttle_reason_seconds_total{cause=\"power\",reason=\"ppt\"} 0.5\n"
            "gpu_throttle_reason_seconds_total{cause=\"thermal\",reason=\"hbm_thm\"} 0.1\n"
            "gpu_throttle_reason_seconds_total{cause=\"thermal\",reason=\"socket_thm\"} 0\n"
            "gpu_throttle_reason_seconds_total{cause=\"thermal\",reason=\"vr_thm\"} 0\n"
            "gpu_throttle_seconds_total{cause=\"hardware\"} 0\n"
            "gpu_throttle_seconds_total{cause=\"power\"} 0.5\n"
            "gpu_throttle_seconds_total{cause=\"thermal\"} 0.1\n");
}

}  // namespace
}  // namespace gpumeter::amd
