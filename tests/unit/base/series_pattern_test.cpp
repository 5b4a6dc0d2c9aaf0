#include "base/series_pattern.hpp"

#include <gtest/gtest.h>

namespace gpumeter {
namespace {

using Labels = std::vector<SeriesPattern::Pair>;

bool selects(std::string_view text, std::string_view family, const Labels& labels = {}) {
  const Result<SeriesPattern> pattern = SeriesPattern::parse(text);
  if (!pattern) ADD_FAILURE() << text << " " << pattern.error().message();
  return pattern && pattern->matches_name(family) && pattern->matches_labels(labels);
}

TEST(SeriesPattern, SelectsFamiliesByName) {
  EXPECT_TRUE(selects("gpu_up", "gpu_up"));
  EXPECT_FALSE(selects("gpu_up", "gpu_up_time"));
  EXPECT_TRUE(selects("gpu_link_*", "gpu_link_errors_total"));
  EXPECT_TRUE(selects("gpu_link_*", "gpu_link_"));
  EXPECT_FALSE(selects("gpu_link_*", "gpu_pcie_link_lanes"));
  EXPECT_TRUE(selects("*_link_*_total", "gpu_pcie_link_events_total"));
  EXPECT_TRUE(selects("*", "gpu_up"));
  EXPECT_TRUE(selects("gpu*_a*_total", "gpu_a_a_total"));
  EXPECT_FALSE(selects("gpu_a*a_total", "gpu_a_total"));
}

TEST(SeriesPattern, SelectsSeriesByLabelsThatTheyMustHave) {
  const Labels labels = {{"gpu", "0"}, {"xid", "31"}};
  EXPECT_TRUE(selects("gpu_*{xid=\"31\"}", "gpu_xid", labels));
  EXPECT_TRUE(selects("gpu_*{xid=\"3*\",gpu=\"0\"}", "gpu_xid", labels));
  EXPECT_FALSE(selects("gpu_*{xid=\"3*\",gpu=\"1\"}", "gpu_xid", labels));
  EXPECT_FALSE(selects("gpu_*{xid=\"3\"}", "gpu_xid", labels));
  EXPECT_FALSE(selects("gpu_*{sensor=\"*\"}", "gpu_xid", labels));
}

TEST(SeriesPattern, TakesACharacterAfterABackslashAsItIs) {
  EXPECT_TRUE(selects(R"(ml_custom{metric="a\"b\*c"})", "ml_custom", {{"metric", "a\"b*c"}}));
  EXPECT_FALSE(selects(R"(ml_custom{metric="\*"})", "ml_custom", {{"metric", "x"}}));
}

TEST(SeriesPattern, RejectsEverythingElse) {
  for (const char* text : {"", " gpu_up", "gpu up", "gpu_up{", "gpu_up{}", "gpu_up{xid}", "gpu_up{xid=31}",
                           "gpu_up{xid=\"31\"", "gpu_up{xid=\"31\",}", "gpu_up{xid=\"31\"}x", "{xid=\"31\"}",
                           "gpu_up{xid!=\"31\"}", "gpu-up", "gpu_up{=\"1\"}", "gpu_up{a=\"1\\"}) {
    const Result<SeriesPattern> pattern = SeriesPattern::parse(text);
    ASSERT_FALSE(pattern) << text;
    EXPECT_TRUE(pattern.error().message().starts_with("must be the name of a family")) << text;
  }
}

}  // namespace
}  // namespace gpumeter
