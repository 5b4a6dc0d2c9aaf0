#include "config/suggest.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "base/options.hpp"

namespace gpumeter::config {
namespace {

TEST(Suggest, FindsWhatWasMeant) {
  const std::vector<std::string> words = {"listen", "config_file", "max_requests", "fast"};
  EXPECT_EQ(nearest("lissen", words), "listen");
  EXPECT_EQ(nearest("config-file", words), "config_file");
  EXPECT_EQ(nearest("maxrequest", words), "max_requests");
  EXPECT_EQ(nearest("fst", words), "fast");
}

TEST(Suggest, SaysNothingWhereNothingIsNear) {
  const std::vector<std::string> words = {"listen", "fast", "on"};
  EXPECT_EQ(nearest("certificate", words), "");
  EXPECT_EQ(nearest("xy", words), "");
  EXPECT_EQ(nearest("", words), "");
  EXPECT_EQ(nearest(std::string(65, 'l'), words), "");
  EXPECT_EQ(nearest("listen", {}), "");
}

TEST(Suggest, EnumeratesWords) {
  EXPECT_EQ(options::enumerate(std::vector<std::string>{}, "or"), "");
  EXPECT_EQ(options::enumerate(std::vector<std::string>{"a"}, "or"), "a");
  EXPECT_EQ(options::enumerate(std::vector<std::string>{"a", "b"}, "or"), "a or b");
  EXPECT_EQ(options::enumerate(std::vector<std::string>{"a", "b", "c"}, "and"), "a, b and c");
}

}  // namespace
}  // namespace gpumeter::config
