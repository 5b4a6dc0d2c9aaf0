#include <gtest/gtest.h>

#include <string>

#include "collectors/amd/gpu_metrics/blob.hpp"
#include "collectors/amd/gpu_metrics/layout.hpp"
#include "tests/fakes/amd_card.hpp"

namespace gpumeter::amd {
namespace {

using Fake = FakeAttributes;

constexpr unsigned kHotspot = 0, kPower = 3, kEnergy = 7, kCounter = 9, kXgmiRead = 29, kClock = 33;

GpuMetricsBlob parsed(const FakeAttributes& fake) {
  GpuMetricsBlob blob;
  blob.parse(fake.bytes());
  return blob;
}

TEST(Attributes, AreFoundWhereverTheyLie) {
  const GpuMetricsBlob blob = parsed(Fake()
                                         .add(kPower, Fake::u16, {640}, 3)
                                         .add(kHotspot, Fake::u16, {71}, 2)
                                         .add(kClock, Fake::u16, {0xffff, 2100, 2090}, 1)
                                         .add(kEnergy, Fake::u64, {65536 * 7}));
  EXPECT_EQ(blob.status(), ReadStatus::ok);
  EXPECT_EQ(blob.value(blob_field("curr_socket_power")).value, 640);
  EXPECT_EQ(blob.value(blob_field("temperature_hotspot")).value, 71);
  EXPECT_EQ(blob.value(blob_field("current_gfxclk")).value, 2100e6);
  EXPECT_EQ(blob.value(blob_field("current_gfxclk"), 2).value, 2090e6);
  EXPECT_EQ(blob.value(blob_field("energy_accumulator")).value, 7);
  EXPECT_FALSE(blob.has(blob_field("temperature_mem")));
}

TEST(Attributes, AnyIntegerTypeAndCountWillDo) {
  constexpr std::size_t kField = blob_field("accumulation_counter");
  for (const Fake::Type type : {Fake::u8, Fake::u16, Fake::s16, Fake::u32, Fake::s32, Fake::u64, Fake::s64}) {
    EXPECT_EQ(parsed(Fake().add(kCounter, type, {77})).value(kField).value, 77) << int{type};
  }
  EXPECT_EQ(parsed(Fake().add(kXgmiRead, Fake::u64, {5})).sum(blob_field("xgmi_read_data_acc")).value,
            5 * 1024);
  EXPECT_EQ(parsed(Fake().add(kHotspot, Fake::s16, {0xfff6})).value(blob_field("temperature_hotspot")).value,
            -10);
  EXPECT_EQ(parsed(Fake().add(kHotspot, Fake::s16, {0xffff})).value(blob_field("temperature_hotspot")).status,
            ReadStatus::unsupported);
}

TEST(Attributes, WhatIsNotKnownIsSkipped) {
  const GpuMetricsBlob blob = parsed(Fake()
                                         .add(1000, Fake::u32, {1, 2, 3})
                                         .add(kHotspot, Fake::u16, {71}, 200)  // a unit of a later format
                                         .add(kPower, Fake::u16, {640}));
  EXPECT_EQ(blob.value(blob_field("curr_socket_power")).value, 640);
  EXPECT_FALSE(blob.has(blob_field("temperature_hotspot")));
}

TEST(Attributes, ContradictionsAreRefused) {
  EXPECT_EQ(parsed(Fake().add(kPower, Fake::u16, {640}).announce(2)).status(), ReadStatus::failed);
  EXPECT_EQ(parsed(Fake().add(kPower, Fake::u16, {640}).announce(0xffffffff)).status(), ReadStatus::failed);
  EXPECT_EQ(parsed(Fake().add(kPower, Fake::u16, {})).status(), ReadStatus::failed);
  EXPECT_EQ(parsed(Fake().add(kPower, static_cast<Fake::Type>(8), {640})).status(), ReadStatus::failed);
}

TEST(Attributes, EveryBeginningIsRefused) {
  const std::string whole = Fake().add(kPower, Fake::u16, {640}).add(kClock, Fake::u16, {1, 2, 3}).bytes();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    std::string part = whole.substr(0, size);
    if (size >= 2) put_number(part, 0, 2, size);
    GpuMetricsBlob blob;
    EXPECT_NE(blob.parse(part), ReadStatus::ok) << size;
    EXPECT_FALSE(blob.has(blob_field("curr_socket_power"))) << size;
  }
}

}  // namespace
}  // namespace gpumeter::amd
