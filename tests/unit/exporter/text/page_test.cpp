#include "exporter/text/page.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "exporter/store/series_list.hpp"
#include "exporter/text/format.hpp"

namespace gpumeter {
namespace {

constexpr MetricDescriptor kUp{"gpu_up", "Up.", "", MetricType::gauge};

/// Shows gpu_up.
class Up {
 public:
  explicit Up(Store& store, std::string_view collector = {}) : series_(store.attach(collector)) {}
  void commit(double value) {
    series_.add(kUp, {}, value);
    series_.commit({});
  }

 private:
  SeriesList series_;
};

constexpr std::string_view kUpPage = "# HELP gpu_up Up.\n# TYPE gpu_up gauge\ngpu_up 1\n";

TEST(PageCache, RendersALongPageOnceASecondAtMost) {
  Store store;
  PageCache pages(store);
  Up up(store);
  up.commit(1);
  pages.page(Format::text, Encoding::identity);
  EXPECT_TRUE(pages.is_short());
  SeriesList many{store.attach("")};
  for (int i = 0; i < 20'000; ++i) {
    many.add(kUp, {{"gpu", std::to_string(i) + std::string(64, 'x')}}, 1);
  }
  many.commit({});
  const PagePtr first = pages.page(Format::text, Encoding::identity);
  EXPECT_GT(first->bytes.size(), PageCache::kLong);
  EXPECT_FALSE(pages.is_short());
  EXPECT_FALSE(pages.is_ready(Format::text, Encoding::gzip));
  up.commit(0);
  const PagePtr again = pages.page(Format::text, Encoding::identity);
  if (again != first) {
    EXPECT_GE(again->rendered_at - first->rendered_at, PageCache::kRecent);
  }
  std::this_thread::sleep_for(PageCache::kRecent);
  EXPECT_FALSE(pages.is_ready(Format::text, Encoding::identity));
  EXPECT_NE(pages.page(Format::text, Encoding::identity), first);
  EXPECT_TRUE(pages.is_ready(Format::text, Encoding::identity));
}

TEST(PageCache, RendersOnceAfterACommitAndThenServesTheSamePage) {
  Store store;
  PageCache pages(store);
  Up up(store);
  up.commit(1);
  const PagePtr first = pages.page(Format::text, Encoding::identity);
  EXPECT_EQ(first->bytes, kUpPage);
  EXPECT_EQ(first->generation, store.generation());
  EXPECT_EQ(pages.page(Format::text, Encoding::identity), first);

  up.commit(0);
  const PagePtr second = pages.page(Format::text, Encoding::identity);
  EXPECT_EQ(second->bytes, "# HELP gpu_up Up.\n# TYPE gpu_up gauge\ngpu_up 0\n");
  EXPECT_EQ(first->bytes, kUpPage) << "who still sends the old page keeps it";
}

TEST(PageCache, ServesTheLastPageAgainIfItIsRecentEnough) {
  Store store;
  PageCache pages(store);
  Up up(store);
  up.commit(1);
  const PagePtr first = pages.page(Format::text, Encoding::identity);
  up.commit(0);
  EXPECT_EQ(pages.page(Format::text, Encoding::identity, PageDetail::configured, std::chrono::hours(1)),
            first);
  const PagePtr second = pages.page(Format::text, Encoding::identity);
  EXPECT_EQ(second->bytes, "# HELP gpu_up Up.\n# TYPE gpu_up gauge\ngpu_up 0\n");
  EXPECT_EQ(pages.page(Format::text, Encoding::identity), second);
}

TEST(PageCache, KeepsFormatsAndEncodingsApart) {
  Store store;
  PageCache pages(store);
  Up up(store);
  up.commit(1);
  EXPECT_EQ(pages.page(Format::openmetrics, Encoding::identity)->bytes,
            "# TYPE gpu_up gauge\n# HELP gpu_up Up.\ngpu_up 1\n# EOF\n");
  const PagePtr compressed = pages.page(Format::text, Encoding::gzip);
  EXPECT_EQ(compressed->encoding, Encoding::gzip);
  EXPECT_EQ(compressed->bytes, *gzip(kUpPage));
  EXPECT_EQ(pages.page(Format::text, Encoding::gzip), compressed);
}

TEST(PageCache, RendersFilteredPagesForEachRequest) {
  Store store;
  PageCache pages(store);
  Up up(store, "amd");
  up.commit(1);
  const Filter none_of_amd{.collect = {}, .exclude = {"amd"}};
  EXPECT_EQ(pages.filtered(Format::text, Encoding::identity, none_of_amd)->bytes, "");
  EXPECT_EQ(pages.filtered(Format::text, Encoding::gzip, {})->bytes, *gzip(kUpPage));
  EXPECT_EQ(pages.page(Format::text, Encoding::identity)->bytes, kUpPage);
}

// gpu_up is on the full page only.
TEST(PageCache, KeepsThePagesOfBothLevelsApart) {
  constexpr MetricDescriptor kOnlyFull{"gpu_up", "Up.", "", MetricType::gauge, kFullPageOnly};
  constexpr Format kText = Format::text;
  constexpr Encoding kIdentity = Encoding::identity;
  Store store;
  SeriesList up(store.attach());
  up.add(kOnlyFull, {}, 1);
  up.commit({});
  PageCache pages(store);
  EXPECT_EQ(pages.page(kText, kIdentity)->bytes, kUpPage) << "the full page at first";
  pages.select({.detail = MetricsDetail::standard});
  const PagePtr configured = pages.page(kText, kIdentity);
  EXPECT_EQ(configured->bytes, "");
  EXPECT_EQ(pages.page(kText, kIdentity, PageDetail::standard), configured);
  const PagePtr full = pages.page(kText, kIdentity, PageDetail::full);
  EXPECT_EQ(full->bytes, kUpPage);
  EXPECT_EQ(pages.page(kText, kIdentity, PageDetail::full), full) << "rendered once";
  EXPECT_EQ(pages.filtered(kText, kIdentity, {}, PageDetail::full)->bytes, kUpPage);
  pages.select({.detail = MetricsDetail::standard, .exclude = {*SeriesPattern::parse("gpu_up")}});
  EXPECT_EQ(pages.page(kText, kIdentity, PageDetail::full)->bytes, "") << "the patterns hold for both";
}

TEST(PageCache, NeverGoesBackForAScraperWhileCommitsGoOn) {
  Store store;
  PageCache pages(store);
  std::atomic<bool> stop = false;
  std::thread lane([&, up = Up(store)]() mutable {
    for (int i = 0; !stop; ++i) up.commit(i);
  });
  std::vector<std::thread> scrapers;
  std::atomic<int> back{0};
  for (int s = 0; s < 3; ++s) {
    scrapers.emplace_back([&, encoding = s == 0 ? Encoding::gzip : Encoding::identity] {
      std::uint64_t last = 0;
      for (int i = 0; i < 500; ++i) {
        const std::uint64_t generation = pages.page(Format::text, encoding)->generation;
        if (generation < last) ++back;
        last = generation;
      }
    });
  }
  for (std::thread& scraper : scrapers) scraper.join();
  stop = true;
  lane.join();
  EXPECT_EQ(back, 0);
}

}  // namespace
}  // namespace gpumeter
