#include "base/records.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace gpumeter {
namespace {

TEST(Records, EveryFieldReadsBackExactly) {
  const std::string awkward = "a\tb\nc\\d\\te";
  RecordWriter out;
  out.begin("one")(awkward, "", 0.1 + 0.2, std::optional<double>());
  out.begin("two")(-7, Nanoseconds(5), std::optional<Nanoseconds>(), true);
  out.begin("three")(std::numeric_limits<double>::max());
  const std::string text = out.take();
  RecordReader in(text);
  ASSERT_TRUE(in.next());
  EXPECT_EQ(in.kind(), "one");
  EXPECT_EQ(in.take<std::string>(), awkward);
  EXPECT_EQ(in.take<std::string>(), "");
  EXPECT_EQ(in.take<double>(), 0.1 + 0.2);
  EXPECT_EQ(in.take<std::optional<double>>(), std::nullopt);
  EXPECT_FALSE(in.has_field());
  ASSERT_TRUE(in.next());
  EXPECT_EQ(in.take<int>(), -7);
  EXPECT_EQ(in.take<std::optional<Nanoseconds>>(), Nanoseconds(5));
  EXPECT_EQ(in.take<std::optional<Nanoseconds>>(), std::nullopt);
  EXPECT_TRUE(in.take<bool>());
  ASSERT_TRUE(in.next());
  EXPECT_EQ(in.take<double>(), std::numeric_limits<double>::max());
  EXPECT_FALSE(in.next());
  EXPECT_FALSE(in.failed());
  EXPECT_EQ(in.line(), 3U);
}

TEST(Records, AMissingOrMalformedFieldEndsTheReading) {
  for (const char* text : {"a\n", "a\tx\n", "a\t\n", "a\t1", "a\t1\\\n", "a\t256\n", "a\t-1\n"}) {
    RecordReader in(text);
    const bool has_line = in.next();
    EXPECT_EQ(in.take<std::uint8_t>(), 0) << text;
    EXPECT_EQ(has_line, std::string_view(text).ends_with('\n')) << text;
    EXPECT_TRUE(in.failed()) << text;
    EXPECT_FALSE(in.next()) << text;
  }
  RecordReader escaped("a\t\\x\n");
  ASSERT_TRUE(escaped.next());
  EXPECT_EQ(escaped.take<std::string>(), "");
  EXPECT_TRUE(escaped.failed());
}

}  // namespace
}  // namespace gpumeter
