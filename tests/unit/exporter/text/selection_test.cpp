#include "exporter/text/selection.hpp"

#include <gtest/gtest.h>

#include "collectors/api/catalog.hpp"

namespace gpumeter {
namespace {

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

}  // namespace
}  // namespace gpumeter
