#include "daemon/state/device_totals.hpp"

#include <gtest/gtest.h>

#include "collectors/api/catalog.hpp"

namespace gpumeter {
namespace {

using Values = std::vector<DeviceTotals::Value>;
using Totals = std::map<std::string, DeviceTotals::Total>;

TEST(DeviceTotals, TheKeyHasTheOwnLabels) {
  EXPECT_EQ(DeviceTotals::key_of({&catalog::energy_joules, {}}), "gpu_energy_joules_total");
  EXPECT_EQ(DeviceTotals::key_of({&catalog::throttle_seconds, {{"cause", "power"}}}),
            "gpu_throttle_seconds_total,cause=power");
}

TEST(DeviceTotals, ReadBack) {
  TotalsBook book;
  const auto one = book.of("GPU-1");
  EXPECT_EQ(one->begin("a", 1767225600.25), 1767225600.25);
  one->plan(std::vector<std::string>{"a", "b"});
  one->put(Values{{1.5, ReadStatus::ok}, {9, ReadStatus::unsupported}});
  book.of("GPU-2");
  TotalsBook again;
  ASSERT_TRUE(again.load(book.save()));
  EXPECT_EQ(again.of("GPU-1")->all(), (Totals{{"a", {1.5, 1767225600.25}}}));
  EXPECT_EQ(again.of("GPU-1")->begin("a", 1767225900), 1767225600.25) << "it was 0 at its first begin";
  EXPECT_TRUE(again.of("GPU-2")->all().empty());
}

TEST(DeviceTotals, AnEarlierVersionDidNotSayWhenACounterBegan) {
  TotalsBook book;
  ASSERT_TRUE(book.load("device\tG\ncounter\ta\t5\n"));
  EXPECT_EQ(book.of("G")->begin("a", 1767225600), 0);
  EXPECT_EQ(book.of("G")->all(), (Totals{{"a", {5, 0}}}));
}

TEST(DeviceTotals, ACounterWithoutAReadingKeepsItsEarlierTotal) {
  DeviceTotals totals;
  totals.set("a", {7});
  totals.set("gone", {3});
  totals.plan(std::vector<std::string>{"a"});
  totals.put(Values{{0, ReadStatus::unsupported}});
  EXPECT_EQ(totals.all(), (Totals{{"a", {7}}, {"gone", {3}}}));
  totals.put(Values{{8, ReadStatus::ok}});
  EXPECT_EQ(totals.find("a"), 8);
}

TEST(DeviceTotals, ALineThatIsNoTotalRejectsTheSection) {
  for (const char* text :
       {"counter\ta\t1\n", "device\tG\ncounter\ta\t-1\n", "device\tG\ncounter\ta\tnan\n",
        "device\tG\ncounter\ta\n", "device\tG\ncounter\ta\t1\t-1\n", "other\n", "device\tG\ndevice\tG\n"}) {
    TotalsBook book;
    book.of("G")->set("a", {5});
    EXPECT_FALSE(book.load(text)) << text;
    EXPECT_EQ(book.of("G")->find("a"), 5) << "the book is unchanged";
  }
}

TEST(DeviceTotals, AForgottenDeviceStartsFromZero) {
  TotalsBook book;
  book.of("GPU-1")->set("a", {1});
  book.forget("GPU-1");
  EXPECT_EQ(book.of("GPU-1")->find("a"), std::nullopt);
}

}  // namespace
}  // namespace gpumeter
