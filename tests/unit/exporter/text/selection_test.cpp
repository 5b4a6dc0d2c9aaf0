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

Appearance of(const PageSelection& from, const MetricDescriptor& family, const Labels& labels) {
  return FamilySelection(from, family).appearance_of(labels);
}

TEST(FamilySelection, HasEverythingOnTheFullPage) {
  const PageSelection full = selection(true);
  EXPECT_TRUE(FamilySelection(full, catalog::xid_errors).is_whole());
  EXPECT_EQ(of(full, catalog::throttled, {}), Appearance::always);
}

TEST(FamilySelection, HasThePartsOfFamiliesThatTheCatalogueNames) {
  const PageSelection standard = selection(false);
  EXPECT_TRUE(FamilySelection(standard, catalog::power).is_whole());
  EXPECT_TRUE(FamilySelection(standard, catalog::throttled).is_whole())
      << "a cause that is not there is not 0";
  EXPECT_EQ(of(standard, catalog::recovery_action, {{"action", "none"}}), Appearance::always);
  EXPECT_EQ(of(standard, catalog::recovery_action, {{"action", "reset"}}), Appearance::nonzero);
  EXPECT_EQ(of(standard, catalog::visible_memory_size, {}), Appearance::never);
  EXPECT_EQ(of(standard, catalog::xid_errors, {{"xid", "79"}}), Appearance::nonzero);
  EXPECT_EQ(of(standard, catalog::xid_errors, {{"xid", "other"}}), Appearance::always);
  EXPECT_EQ(of(standard, catalog::peak_flops, {{"dtype", "bf16"}}), Appearance::always);
  EXPECT_EQ(of(standard, catalog::peak_flops, {{"dtype", "int8"}}), Appearance::never);
}

TEST(FamilySelection, IncludesBeforeItExcludes) {
  const PageSelection some = selection(false, {"gpu_xid_*{xid=\"31\"}", "gpu_power_*"}, {"gpu_*"});
  EXPECT_EQ(of(some, catalog::xid_errors, {{"xid", "31"}}), Appearance::always);
  EXPECT_EQ(of(some, catalog::xid_errors, {{"xid", "other"}}), Appearance::never);
  EXPECT_EQ(of(some, catalog::power, {}), Appearance::always);
  EXPECT_EQ(of(some, catalog::up, {}), Appearance::never);
  EXPECT_TRUE(FamilySelection(some, catalog::ml_steps).is_whole());
  EXPECT_FALSE(FamilySelection(selection(true, {}, {"gpu_up"}), catalog::up).is_whole());
}

using std::chrono::seconds;

constexpr Nanoseconds kEpoch = seconds(1'000'000);

class LateSeriesTest : public testing::Test {
 protected:
  /// The page that is rendered this long after the first one.
  Shown page_at(seconds time, double value) { return series_.counter(value, {time, kEpoch + time}); }

  LateSeries series_;
};

TEST_F(LateSeriesTest, IsOnNoPageBeforeItsFirstEvent) {
  EXPECT_FALSE(page_at(seconds(0), 0).is_shown);
  EXPECT_FALSE(page_at(seconds(1000), 0).is_shown);
}

TEST_F(LateSeriesTest, IsAZeroForEveryScraperBeforeItIsItsFirstEvent) {
  page_at(seconds(0), 0);
  page_at(seconds(15), 0);
  for (const int time : {30, 45, 60, 75, 99}) {
    const Shown shown = page_at(seconds(time), time < 60 ? 1 : 2);
    EXPECT_TRUE(shown.is_shown) << time;
    EXPECT_EQ(shown.value, 0) << time;
    EXPECT_EQ(shown.since, 1'000'015) << time;
  }
  const Shown after = page_at(seconds(30) + seconds(70), 2);
  EXPECT_EQ(after.value, 2);
  EXPECT_EQ(after.since, 1'000'015);
}

// The daemon cannot know when such a counter began, and no scraper has a sample of it.
TEST_F(LateSeriesTest, HasItsValueAtOnceIfItWasNeverZeroOnAPage) {
  const Shown first = page_at(seconds(0), 7);
  EXPECT_TRUE(first.is_shown);
  EXPECT_EQ(first.value, 7);
  EXPECT_EQ(first.since, 0);
}

TEST_F(LateSeriesTest, StaysWhenItsSourceStartsAgainFromZero) {
  page_at(seconds(0), 7);
  page_at(seconds(15), 9);
  const Shown reset = page_at(seconds(30), 0);
  EXPECT_TRUE(reset.is_shown);
  EXPECT_EQ(reset.value, 0);
  EXPECT_EQ(reset.since, 1'000'015);
  EXPECT_EQ(page_at(seconds(45), 1).value, 1);
}

}  // namespace
}  // namespace gpumeter
