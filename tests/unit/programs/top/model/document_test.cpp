#include "programs/top/model/document.hpp"

#include <gtest/gtest.h>

namespace gpumeter::top {
namespace {

TEST(DocumentTest, ParsesSeries) {
  const auto samples = parse_series(
      R"({"series":[
{"name":"gpu_power_watts","labels":{"gpu":"0","uuid":"GPU-1"},"value":301.5,"unit":"watts","type":"gauge","age_seconds":0.5},
{"name":"ml_loss","labels":{"run":"a\u001b[31m"},"value":"NaN","unit":"","type":"gauge","age_seconds":0.5},
{"name":"ml_step","labels":{"run":"a\u001b[31m"},"value":7,"unit":"","type":"gauge","age_seconds":2}
]})",
      Charset::ascii);
  ASSERT_TRUE(samples) << samples.error().message();
  ASSERT_EQ(samples->size(), 2U) << "NaN is no value";
  EXPECT_EQ((*samples)[0].name, "gpu_power_watts");
  EXPECT_EQ((*samples)[0].label("uuid"), "GPU-1");
  EXPECT_EQ((*samples)[0].label("model"), "");
  EXPECT_EQ((*samples)[0].value, 301.5);
  EXPECT_EQ((*samples)[0].age_seconds, 0.5);
  EXPECT_EQ((*samples)[1].label("run"), "a?[31m");
}

TEST(DocumentTest, MakesNamesOfLabelsPrintable) {
  const auto series =
      parse_series(R"({"series":[{"name":"a","labels":{"x\u001b[2J":"1"},"value":1}]})", Charset::ascii);
  ASSERT_TRUE(series);
  EXPECT_EQ(series->at(0).label("x?[2J"), "1");
}

TEST(DocumentTest, ParsesHealth) {
  const auto health = parse_health(
      R"({"devices":[{"gpu":"0","uuid":"GPU-1","vendor":"nvidia","model":"H100","pci_address":"0000:17:00.0","state":"failed",
"since_seconds":12.3,"reasons":[{"reason":"xid_79","severity":"failed","action":"reboot","text":"XID 79: off the bus","value":1,
"since_seconds":12.3,"alert":"GpuXid","runbook":"gpuxid"}]}],
"machine":[{"reason":"devices_missing","severity":"failed","action":"reboot","text":"7 of 8"}],"state":"failed"})",
      Charset::utf8);
  ASSERT_TRUE(health) << health.error().message();
  ASSERT_EQ(health->devices.size(), 1U);
  EXPECT_EQ(health->devices[0].state, "failed");
  EXPECT_EQ(health->devices[0].since_seconds, 12.3);
  ASSERT_EQ(health->devices[0].findings.size(), 1U);
  EXPECT_EQ(health->devices[0].findings[0].text, "XID 79: off the bus");
  EXPECT_EQ(health->devices[0].findings[0].action, "reboot");
  ASSERT_EQ(health->machine.size(), 1U);
  EXPECT_EQ(health->machine[0].since_seconds, std::nullopt);
}

TEST(DocumentTest, RejectsOtherDocuments) {
  for (const char* text : {"", "<html>", "[]", "{}", "{\"series\":{}}", "{\"series\":[", "\xff"}) {
    EXPECT_FALSE(parse_series(text, Charset::utf8)) << text;
    EXPECT_FALSE(parse_health(text, Charset::utf8)) << text;
  }
}

TEST(DocumentTest, OmitsElementsOfOtherTypes) {
  const auto samples =
      parse_series(R"({"series":[1,null,[],{},{"name":3,"labels":[],"value":1}]})", Charset::utf8);
  ASSERT_TRUE(samples);
  ASSERT_EQ(samples->size(), 1U);
  EXPECT_EQ((*samples)[0].name, "");
  const auto health = parse_health(R"({"devices":[1,{"gpu":0,"reasons":{}}],"machine":7})", Charset::utf8);
  ASSERT_TRUE(health);
  EXPECT_EQ(health->devices.size(), 2U);
}

}  // namespace
}  // namespace gpumeter::top
