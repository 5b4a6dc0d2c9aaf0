#include "collectors/amd/gpu_metrics/blob.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "tests/fakes/amd_card.hpp"
#include "tests/fakes/tree.hpp"

namespace gpumeter::amd {
namespace {

constexpr std::size_t kEdge = blob_field("temperature_edge");
constexpr std::size_t kThrottle = blob_field("indep_throttle_status");

GpuMetricsBlob parsed(const std::string& bytes) {
  GpuMetricsBlob blob;
  blob.parse(bytes);
  return blob;
}

double value_of(const FakeBlob& fake, std::string_view field, std::size_t element = 0) {
  const Sample sample = parsed(fake.bytes()).value(blob_field(field), element);
  EXPECT_EQ(sample.status, ReadStatus::ok) << field;
  return sample.value;
}

TEST(GpuMetricsBlob, GivesBaseUnits) {
  EXPECT_DOUBLE_EQ(value_of(FakeBlob().set("temperature_edge", 56), "temperature_edge"), 56);
  EXPECT_DOUBLE_EQ(value_of(FakeBlob().set("average_gfx_activity", 3), "average_gfx_activity"), 0.03);
  EXPECT_DOUBLE_EQ(value_of(FakeBlob().set("average_socket_power", 36), "average_socket_power"), 36);
  EXPECT_DOUBLE_EQ(value_of(FakeBlob().set("current_socclk", 800), "current_socclk"), 800e6);
  EXPECT_DOUBLE_EQ(value_of(FakeBlob().set("voltage_mem", 1356), "voltage_mem"), 1.356);
  EXPECT_DOUBLE_EQ(value_of(FakeBlob().set("current_fan_speed", 868), "current_fan_speed"), 868);
  EXPECT_DOUBLE_EQ(value_of(FakeBlob().set("pcie_link_speed", 160), "pcie_link_speed"), 16e9);
  EXPECT_DOUBLE_EQ(value_of(FakeBlob().set("firmware_timestamp", 150), "firmware_timestamp"), 1.5e-6);
  EXPECT_DOUBLE_EQ(value_of(FakeBlob().set("temperature_hbm", 41, 3), "temperature_hbm", 3), 41);
}

TEST(GpuMetricsBlob, UnitsAreThoseOfTheVersion) {
  EXPECT_DOUBLE_EQ(value_of(FakeBlob(2, 1).set("temperature_soc", 2737), "temperature_soc"), 27.37);
  EXPECT_DOUBLE_EQ(value_of(FakeBlob(2, 1).set("average_soc_power", 743), "average_soc_power"), 0.743);
  EXPECT_DOUBLE_EQ(value_of(FakeBlob(2, 4).set("average_gfx_voltage", 814), "average_gfx_voltage"), 0.814);
  EXPECT_DOUBLE_EQ(value_of(FakeBlob(3, 0).set("average_apu_power", 98390), "average_apu_power"), 98.39);
  EXPECT_DOUBLE_EQ(value_of(FakeBlob(3, 0).set("average_fclk_frequency", 800), "average_fclk_frequency"),
                   800e6);
  EXPECT_DOUBLE_EQ(value_of(FakeBlob(1, 4).set("energy_accumulator", 1 << 17), "energy_accumulator"), 2);
  EXPECT_DOUBLE_EQ(value_of(FakeBlob(1, 8).set("mem_max_bandwidth", 5300), "mem_max_bandwidth"), 5.3e12);
}

TEST(GpuMetricsBlob, WhatDependsOnChipOrFirmwareIsNotRead) {
  for (const auto& [format, field] :
       {std::pair(2, "average_socket_power"), std::pair(2, "average_gfx_activity"),
        std::pair(1, "energy_accumulator")}) {
    const GpuMetricsBlob blob = parsed(FakeBlob(format, 3).set(field, 100).bytes());
    EXPECT_FALSE(blob.has(blob_field(field))) << field;
    EXPECT_EQ(blob.value(blob_field(field)).status, ReadStatus::unsupported) << field;
    EXPECT_EQ(blob.raw(blob_field(field)), 100) << field;
  }
}

TEST(GpuMetricsBlob, ALittleOverFullIsFull) {
  EXPECT_EQ(value_of(FakeBlob().set("average_gfx_activity", 101), "average_gfx_activity"), 1);
  EXPECT_EQ(value_of(FakeBlob().set("average_gfx_activity", 201), "average_gfx_activity"), 2.01);
}

TEST(GpuMetricsBlob, ArraysAreReadByElementAsASumAndByTheFirstThatIsThere) {
  const GpuMetricsBlob blob = parsed(FakeBlob(1, 4)
                                         .set("current_gfxclk", 2100, 2)
                                         .set("current_gfxclk", 900, 3)
                                         .set("xgmi_read_data_acc", 3, 0)
                                         .set("xgmi_read_data_acc", 4, 7)
                                         .bytes());
  EXPECT_EQ(blob.value(blob_field("current_gfxclk")).value, 2100e6);
  EXPECT_EQ(blob.value(blob_field("current_gfxclk"), 3).value, 900e6);
  EXPECT_EQ(blob.value(blob_field("current_gfxclk"), 0).status, ReadStatus::unsupported);
  EXPECT_EQ(blob.sum(blob_field("xgmi_read_data_acc")).value, 7 * 1024);
  EXPECT_EQ(blob.sum(blob_field("xgmi_write_data_acc")).status, ReadStatus::unsupported);
}

TEST(GpuMetricsBlob, StatesAreCounted) {
  constexpr std::size_t kStatus = blob_field("xgmi_link_status");
  FakeBlob fake(1, 7);
  EXPECT_EQ(parsed(fake.bytes()).count_of(kStatus, 0b11).status, ReadStatus::unsupported);
  fake.set("xgmi_link_status", 1, 0).set("xgmi_link_status", 0, 1).set("xgmi_link_status", 2, 2);
  EXPECT_EQ(parsed(fake.bytes()).count_of(kStatus, 0b11).value, 2);
  EXPECT_EQ(parsed(fake.bytes()).count_of(kStatus, 0b10).value, 1);
}

TEST(GpuMetricsBlob, PartitionsHaveFieldsOfTheirOwn) {
  const GpuMetricsBlob blob =
      parsed(FakeBlob(1, 8).set("vcn_busy", 30, 1, 0).set("vcn_busy", 80, 3, 7).bytes());
  constexpr std::size_t kBusy = blob_field("vcn_busy");
  EXPECT_EQ(blob.value(kBusy, 1, 0).value, 0.3);
  EXPECT_EQ(blob.value(kBusy, 3, 7).value, 0.8);
  EXPECT_EQ(blob.value(kBusy, 3, 6).status, ReadStatus::unsupported);
  EXPECT_EQ(blob.value(kBusy, 3, 8).status, ReadStatus::unsupported);
}

TEST(GpuMetricsBlob, AllOnesIsAbsentElementByElement) {
  const GpuMetricsBlob blob = parsed(FakeBlob().set("temperature_hbm", 41, 1).bytes());
  constexpr std::size_t kHbm = blob_field("temperature_hbm");
  EXPECT_EQ(blob.value(kHbm, 0).status, ReadStatus::unsupported);
  EXPECT_EQ(blob.value(kHbm, 1).value, 41);
  EXPECT_EQ(blob.value(kHbm, 4).status, ReadStatus::unsupported);  // there are four
  EXPECT_EQ(blob.flags(kThrottle).any_of(1).status, ReadStatus::unsupported);
  for (std::size_t field = 0; field < kBlobFieldCount; ++field) {
    const ReadStatus expected = field == kHbm ? ReadStatus::ok : ReadStatus::unsupported;
    EXPECT_EQ(blob.value(field).status, expected) << fields::kAll[field].name;
  }
}

TEST(GpuMetricsBlob, ZeroIsAbsentForTemperaturesAndVoltagesOnly) {
  for (const char* const field : {"temperature_vrgfx", "voltage_gfx"}) {
    const GpuMetricsBlob blob = parsed(FakeBlob().set(field, 0).bytes());
    EXPECT_EQ(blob.value(blob_field(field)).status, ReadStatus::unsupported) << field;
  }
  for (const char* const field : {"average_gfx_activity", "current_fan_speed", "current_vclk0"}) {
    EXPECT_EQ(value_of(FakeBlob().set(field, 0), field), 0) << field;
  }
}

TEST(GpuMetricsBlob, FlagsAreAskedByMask) {
  const GpuMetricsBlob none = parsed(FakeBlob().set("indep_throttle_status", 0).bytes());
  EXPECT_EQ(none.flags(kThrottle).any_of(~0ULL).status, ReadStatus::ok);
  EXPECT_EQ(none.flags(kThrottle).any_of(~0ULL).value, 0);
  const GpuMetricsBlob hotspot = parsed(FakeBlob().set("indep_throttle_status", 1ULL << 36).bytes());
  EXPECT_EQ(hotspot.flags(kThrottle).any_of(1ULL << 36 | 1).value, 1);
  EXPECT_EQ(hotspot.flags(kThrottle).any_of(1ULL << 35 | 1).value, 0);
}

TEST(GpuMetricsBlob, PaddingBehindTheStructureIsNotRead) {
  const GpuMetricsBlob blob =
      parsed(FakeBlob().set("temperature_edge", 56).bytes() + std::string(4096 - 120, '\0'));
  EXPECT_EQ(blob.value(kEdge).value, 56);
}

TEST(GpuMetricsBlob, RefusesWhatItDoesNotKnow) {
  std::string other = FakeBlob().bytes();
  other[3] = 10;  // a later format
  GpuMetricsBlob blob;
  EXPECT_EQ(blob.parse(other), ReadStatus::unsupported);
  EXPECT_FALSE(blob.has(kEdge));
  EXPECT_EQ(blob.value(kEdge).status, ReadStatus::unsupported);
  EXPECT_EQ(blob.flags(kThrottle).any_of(1).status, ReadStatus::unsupported);
}

TEST(GpuMetricsBlob, RefusesWhatIsTooShort) {
  const std::string good = FakeBlob().set("temperature_edge", 56).bytes();
  GpuMetricsBlob blob;
  EXPECT_EQ(blob.parse({}), ReadStatus::unsupported);
  EXPECT_EQ(blob.parse(std::string_view(good).substr(0, 3)), ReadStatus::failed);
  EXPECT_EQ(blob.parse(std::string_view(good).substr(0, 119)), ReadStatus::failed);
  std::string lies = good;
  lies[0] = 119;  // a structure_size below that of v1.3
  EXPECT_EQ(blob.parse(lies), ReadStatus::failed);
  EXPECT_EQ(blob.parse(std::string(151, '\0')), ReadStatus::failed);
  EXPECT_EQ(blob.value(kEdge).status, ReadStatus::failed);
}

TEST(GpuMetricsBlob, ReadsNoMoreThanTheFileHasAndNoMoreThanThereIsRoomFor) {
  const Tree tree = make_tree({{"gpu_metrics", FakeBlob(1, 8).set("temperature_hotspot", 71).bytes()}});
  GpuMetricsBlob blob;
  EXPECT_EQ(blob.read(sysfs::File(tree / "gpu_metrics")), ReadStatus::ok);
  EXPECT_EQ(blob.value(blob_field("temperature_hotspot")).value, 71);
  tree.write("gpu_metrics", FakeBlob(1, 8).bytes().substr(0, 3871));
  EXPECT_EQ(blob.read(sysfs::File(tree / "gpu_metrics")), ReadStatus::failed);
  std::string huge = FakeAttributes().bytes();
  huge.resize(GpuMetricsBlob::kMaxSize + 1);
  put_number(huge, 0, 2, huge.size());
  tree.write("gpu_metrics", huge);
  EXPECT_EQ(blob.read(sysfs::File(tree / "gpu_metrics")), ReadStatus::failed);
}

TEST(GpuMetricsBlob, LooksAtTheHeaderAtEachRead) {
  const Tree tree = make_tree({{"gpu_metrics", FakeBlob().set("temperature_edge", 56).bytes()}});
  const sysfs::File file(tree / "gpu_metrics");
  GpuMetricsBlob blob;
  EXPECT_EQ(blob.read(file), ReadStatus::ok);
  EXPECT_EQ(blob.value(kEdge).value, 56);
  tree.write("gpu_metrics", "");
  EXPECT_EQ(blob.read(file), ReadStatus::unsupported);
  EXPECT_EQ(blob.value(kEdge).status, ReadStatus::unsupported);
  EXPECT_EQ(blob.read(sysfs::File(tree / "nothing")), ReadStatus::gone);
}

}  // namespace
}  // namespace gpumeter::amd
