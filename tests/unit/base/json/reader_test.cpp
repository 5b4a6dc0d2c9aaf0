#include "base/json/reader.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace gpumeter {
namespace {

// The sum of the numbers of the array under "a", in a document whose other values are skipped; -1: failed.
std::int64_t sum_of(std::string_view text) {
  JsonReader in(text);
  in.begin_object();
  std::int64_t sum = 0;
  for (std::string_view key; in.next_key(key);) {
    if (key != "a") {
      in.skip();
      continue;
    }
    in.begin_array();
    while (in.next_element()) sum += in.number<int>();
  }
  return in.is_complete() ? sum : -1;
}

TEST(JsonReader, ReadsWhatItKnowsAndSkipsTheRest) {
  EXPECT_EQ(sum_of(R"({"a": [1, 2, 3]})"), 6);
  EXPECT_EQ(sum_of(R"({"x": {"a": [9], "y": [[], {}, "]}"]}, "a": [], "z": null})"), 0);
  EXPECT_EQ(sum_of(R"({"x": "a \" b", "t": true, "n": -1.5e3, "a": [-4]} )"), -4);
}

TEST(JsonReader, NeedsNoCommas) { EXPECT_EQ(sum_of("{\"x\": 1\n\"a\": [1\n2]}"), 3); }

TEST(JsonReader, FailsOnTornTexts) {
  const std::string whole = R"({"x": {"y": "text", "z": [1, {}]}, "a": [1, 20]})";
  ASSERT_EQ(sum_of(whole), 21);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_EQ(sum_of(std::string_view(whole).substr(0, length)), -1) << length;
  }
}

TEST(JsonReader, FailsOnOtherValues) {
  for (const char* text : {R"({"a": 1})", R"({"a": [1.5]})", R"({"a": ["1"]})", R"({"a": [99999999999]})",
                           R"({"a": [1]} x)", R"([1])", R"({a: [1]})", R"({"a" [1]})", R"({"a": [1}})", ""}) {
    EXPECT_EQ(sum_of(text), -1) << text;
  }
}

TEST(JsonReader, FailsOnDeepTexts) {
  EXPECT_EQ(sum_of("{\"x\": " + std::string(1'000'000, '[')), -1);
  std::string deep =
      "{\"x\": " + std::string(JsonReader::kDeepest, '[') + std::string(JsonReader::kDeepest, ']') + "}";
  EXPECT_EQ(sum_of(deep), -1);
  deep.erase(deep.find('['), 1).erase(deep.find(']'), 1);
  EXPECT_EQ(sum_of(deep), 0);
}

TEST(JsonReader, ReadsStringsAndBooleans) {
  JsonReader in(R"(["a\"b", true, false, maybe])");
  ASSERT_TRUE(in.begin_array());
  EXPECT_TRUE(in.next_element());
  EXPECT_EQ(in.string(), "a\\\"b");
  EXPECT_TRUE(in.next_element() && in.boolean());
  EXPECT_TRUE(in.next_element() && !in.boolean() && !in.failed());
  EXPECT_TRUE(in.next_element());
  EXPECT_FALSE(in.boolean());
  EXPECT_TRUE(in.failed());
  EXPECT_FALSE(in.next_element());
}

}  // namespace
}  // namespace gpumeter
