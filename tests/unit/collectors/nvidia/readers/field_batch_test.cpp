#include "collectors/nvidia/readers/field_batch.hpp"

#include <gtest/gtest.h>

#include "collectors/api/catalog.hpp"
#include "collectors/nvidia/readers/basic.hpp"
#include "tests/fakes/nvidia_gpu.hpp"

namespace gpumeter::nvidia {
namespace {

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
  row.source = call<&F::nvmlDeviceGetPowerUsage>("d");
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

}  // namespace
}  // namespace gpumeter::nvidia
