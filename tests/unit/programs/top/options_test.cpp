#include "programs/top/options.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace gpumeter::top {
namespace {

std::variant<Options, Exit> parse(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "gpumeter-top");
  return parse_options(static_cast<int>(arguments.size()), arguments.data());
}

std::string url(const char* text) { return std::get<Options>(parse({"--url", text})).address.url; }

TEST(TopOptionsTest, Defaults) {
  const Options options = std::get<Options>(parse({}));
  EXPECT_EQ(options.address.url, "http://localhost:10478");
  EXPECT_EQ(options.interval, std::chrono::seconds(1));
  EXPECT_EQ(options.sort, Sort::state);
  EXPECT_FALSE(options.once);
}

TEST(TopOptionsTest, Addresses) {
  EXPECT_EQ(url("node17"), "http://node17:10478");
  EXPECT_EQ(url("node17:9"), "http://node17:9");
  EXPECT_EQ(url(":9"), "http://localhost:9");
  EXPECT_EQ(url("[::1]"), "http://[::1]:10478");
  EXPECT_EQ(url("https://proxy/gpus/?a#b"), "https://proxy/gpus");
  EXPECT_EQ(std::get<Options>(parse({"--url=http://node17:10478"})).address.host, "node17");
  EXPECT_EQ(std::get<Options>(parse({"--url=node17:9"})).address.host, "node17:9");
}

TEST(TopOptionsTest, Intervals) {
  EXPECT_EQ(std::get<Options>(parse({"--interval=2"})).interval, std::chrono::seconds(2));
  EXPECT_EQ(std::get<Options>(parse({"--interval=500ms"})).interval, std::chrono::milliseconds(500));
}

TEST(TopOptionsTest, RejectsWhatIsWrong) {
  for (const std::vector<const char*>& wrong : {std::vector{"--url=ftp://x"},
                                                {"--url="},
                                                {"--url=http://"},
                                                {"--interval=0"},
                                                {"--interval=1ms"},
                                                {"--sort=x"},
                                                {"--bogus"},
                                                {"word"},
                                                {"--url"}}) {
    const auto parsed = parse(wrong);
    ASSERT_TRUE(std::holds_alternative<Exit>(parsed)) << wrong[0];
    EXPECT_EQ(std::get<Exit>(parsed).code, 2) << wrong[0];
  }
  EXPECT_EQ(std::get<Exit>(parse({"--sort=\x1b[2J"})).text.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace gpumeter::top
