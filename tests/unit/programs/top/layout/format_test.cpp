#include "programs/top/layout/format.hpp"

#include <gtest/gtest.h>

namespace gpumeter::top {
namespace {

TEST(FormatTest, AbsentIsNotZero) {
  EXPECT_EQ(number_text({}), "-");
  EXPECT_EQ(pair_text({}, {}), "-");
  EXPECT_EQ(pair_text({}, 450), "-/450");
  EXPECT_EQ(percent_text({}), "-");
  EXPECT_EQ(short_text({}), "-");
  EXPECT_EQ(age_text({}), "-");
}

TEST(FormatTest, Numbers) {
  EXPECT_EQ(number_text(412.4), "412");
  EXPECT_EQ(number_text(-0.2), "0");
  EXPECT_EQ(pair_text(38 * kGiB, 80 * kGiB, 1, kGiB), "38.0/80.0");
  EXPECT_EQ(percent_text(0.874), "87%");
  EXPECT_EQ(short_text(4.018), "4.02");
  EXPECT_EQ(short_text(12.34), "12.3");
  EXPECT_EQ(short_text(250.4), "250");
  EXPECT_EQ(short_text(0.0123), "0.0123");
  EXPECT_EQ(short_text(0), "0.0000");
  EXPECT_EQ(short_text(3e8), "3.00e+08");
}

TEST(FormatTest, Ages) {
  EXPECT_EQ(age_text(45.2), "45s");
  EXPECT_EQ(age_text(192), "3m12s");
  EXPECT_EQ(age_text(5 * 3600 + 185), "5h03m");
  EXPECT_EQ(age_text(12.2 * 86400), "12d4h");
}

TEST(FormatTest, Ranges) {
  EXPECT_EQ(ranges_text({}), "-");
  EXPECT_EQ(ranges_text({"3"}), "3");
  EXPECT_EQ(ranges_text({"0", "1", "2", "5", "6", "9"}), "0-2,5,6,9");
}

TEST(FormatTest, BarsHaveTheirWidth) {
  EXPECT_EQ(bar(0.5, 10, Charset::ascii), "|||||     ");
  EXPECT_EQ(bar(7, 4, Charset::ascii), "||||");
  EXPECT_EQ(bar(0.55, 5, Charset::utf8), "██▊  ");
  EXPECT_EQ(bar(0, 3, Charset::utf8), "   ");
}

}  // namespace
}  // namespace gpumeter::top
