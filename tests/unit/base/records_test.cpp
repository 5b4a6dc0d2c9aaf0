#include "base/records.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace gpumeter {
namespace {

TEST(Records, EveryFieldReadsBackExactly) {
  const std::string awkward = "a\tb\nc\\d\\te";
  RecordWriter out;
  out.begin("one").text(awkward).text("").number(0.1 + 0.2).number(std::optional<double>());
  out.begin("two").integer(-7).time(Nanoseconds(5)).time(std::optional<Nanoseconds>()).flag(true);
  out.begin("three").number(std::numeric_limits<double>::max());
  const std::string text = out.take();
  RecordReader in(text);
  ASSERT_TRUE(in.next());
  EXPECT_EQ(in.kind(), "one");
  EXPECT_EQ(in.text(), awkward);
  EXPECT_EQ(in.text(), "");
  EXPECT_EQ(in.number(), 0.1 + 0.2);
  EXPECT_EQ(in.optional_number(), std::nullopt);
  EXPECT_FALSE(in.has_field());
  ASSERT_TRUE(in.next());
  EXPECT_EQ(in.integer(-10, 10), -7);
  EXPECT_EQ(in.optional_time(), Nanoseconds(5));
  EXPECT_EQ(in.optional_time(), std::nullopt);
  EXPECT_TRUE(in.flag());
  ASSERT_TRUE(in.next());
  EXPECT_EQ(in.number(), std::numeric_limits<double>::max());
  EXPECT_FALSE(in.next());
  EXPECT_FALSE(in.failed());
  EXPECT_EQ(in.line(), 3U);
}

TEST(Records, AMissingOrMalformedFieldEndsTheReading) {
  for (const char* text : {"a\n", "a\tx\n", "a\t\n", "a\t1", "a\t1\\\n", "a\t99\n"}) {
    RecordReader in(text);
    const bool has_line = in.next();
    EXPECT_EQ(in.integer(0, 9), 0) << text;
    EXPECT_EQ(has_line, std::string_view(text).ends_with('\n')) << text;
    EXPECT_TRUE(in.failed()) << text;
    EXPECT_FALSE(in.next()) << text;
  }
  RecordReader escaped("a\t\\x\n");
  ASSERT_TRUE(escaped.next());
  EXPECT_EQ(escaped.text(), "");
  EXPECT_TRUE(escaped.failed());
}

}  // namespace
}  // namespace gpumeter
