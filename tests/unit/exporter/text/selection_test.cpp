#include "exporter/text/selection.hpp"

#include <gtest/gtest.h>

#include "collectors/api/catalog.hpp"

namespace gpumeter {
namespace {

using Pairs = std::vector<Labels::Pair>;

bool selects(std::string_view text, std::string_view family, const Pairs& labels = {}) {
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
  const Pairs labels = {{"gpu", "0"}, {"xid", "31"}};
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

PageSelection selection(bool is_full, const std::vector<std::string>& include = {},
                        const std::vector<std::string>& exclude = {}) {
  PageSelection made{.detail = is_full ? MetricsDetail::full : MetricsDetail::standard};
  for (const std::string& text : include) made.include.push_back(*SeriesPattern::parse(text));
  for (const std::string& text : exclude) made.exclude.push_back(*SeriesPattern::parse(text));
  return made;
}

TEST(PageSelection, HasEverythingOnTheFullPage) {
  const PageSelection full = selection(true);
  EXPECT_TRUE(full.is_whole(catalog::xid_errors));
  EXPECT_EQ(full.appearance_of(catalog::throttled, {}), Appearance::always);
}

TEST(PageSelection, HasThePartsOfFamiliesThatTheCatalogueNames) {
  const PageSelection standard = selection(false);
  EXPECT_TRUE(standard.is_whole(catalog::power));
  EXPECT_TRUE(standard.is_whole(catalog::throttled)) << "a cause that is not there is not 0";
  EXPECT_EQ(standard.appearance_of(catalog::recovery_action, {{"action", "none"}}), Appearance::always);
  EXPECT_EQ(standard.appearance_of(catalog::recovery_action, {{"action", "reset"}}), Appearance::nonzero);
  EXPECT_EQ(standard.appearance_of(catalog::visible_memory_size, {}), Appearance::never);
  EXPECT_EQ(standard.appearance_of(catalog::xid_errors, {{"xid", "79"}}), Appearance::nonzero);
  EXPECT_EQ(standard.appearance_of(catalog::xid_errors, {{"xid", "other"}}), Appearance::always);
  EXPECT_EQ(standard.appearance_of(catalog::peak_flops, {{"dtype", "bf16"}}), Appearance::always);
  EXPECT_EQ(standard.appearance_of(catalog::peak_flops, {{"dtype", "int8"}}), Appearance::never);
}

TEST(PageSelection, IncludesBeforeItExcludes) {
  const PageSelection some = selection(false, {"gpu_xid_*{xid=\"31\"}", "gpu_power_*"}, {"gpu_*"});
  EXPECT_EQ(some.appearance_of(catalog::xid_errors, {{"xid", "31"}}), Appearance::always);
  EXPECT_EQ(some.appearance_of(catalog::xid_errors, {{"xid", "other"}}), Appearance::never);
  EXPECT_EQ(some.appearance_of(catalog::power, {}), Appearance::always);
  EXPECT_EQ(some.appearance_of(catalog::up, {}), Appearance::never);
  EXPECT_TRUE(some.is_whole(catalog::ml_steps));
  EXPECT_FALSE(selection(true, {}, {"gpu_up"}).is_whole(catalog::up));
}

}  // namespace
}  // namespace gpumeter
