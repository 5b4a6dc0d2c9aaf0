#include "collectors/pages/page.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace gpumeter::pages {
namespace {

/// A family a line, `type name help: part{labels}=value ...`, or the wrong line.
std::string read(std::string_view text) {
  constexpr const char* kParts[] = {"", "bucket", "sum", "count"};
  std::optional<BadLine> wrong;
  const Page page = read_page(text, 8, wrong);
  if (wrong) return std::to_string(wrong->line) + ": " + wrong->text;
  std::string out;
  for (const Page::Family& family : page.families) {
    out += std::string(to_string(family.type)) + " " + family.name + " " + family.help.value_or("-") + ":";
    for (const Page::Series& series : family.series) {
      out += std::string(" ") + kParts[static_cast<std::size_t>(series.part)];
      for (const Label& label : series.pairs) out += "{" + label.name + "=" + label.value + "}";
      out += std::isfinite(series.value) ? "=" + std::to_string(static_cast<int>(series.value)) : "=Inf";
    }
    out += "\n";
  }
  if (page.expires) out += duration_text(*page.expires);
  return out;
}

TEST(ReadPage, KeepsTypesAndHelpTexts) {
  EXPECT_EQ(read("# HELP a First \\\\ \\n line.\n# TYPE a counter\na 1\n# other\nb{x=\"\\\"\\n\"} +Inf\n# "
                 "gpumeter: expires 90s\n")
                .substr(0, 32),
            "counter a First \\ \n line.: =1\nun");
  EXPECT_EQ(read("a 1\nb 2\na{x=\"1\"} 3\n"), "untyped a -: =1 {x=1}=3\nuntyped b -: =2\n");
  EXPECT_EQ(read("# HELP unused No sample.\n# gpumeter: expires 90s"), "1m30s");
  EXPECT_EQ(read("# TYPE a unknown\na 1"), "untyped a -: =1\n");
}

TEST(ReadPage, PutsThePartsOfAHistogramTogether) {
  EXPECT_EQ(read("# TYPE a histogram\na_count 3\na_bucket{le=\"+Inf\"} 3\na_bucket{le=\"1\"} 2\na_sum 9\n"),
            "histogram a -: bucket{le=1}=2 bucket{le=+Inf}=3 sum=9 count=3\n");
  EXPECT_EQ(read("# TYPE a summary\na_sum 4\na_count 3\na{quantile=\"0.9\"} 8\na{quantile=\"0.5\"} 2\n"),
            "summary a -: {quantile=0.5}=2 {quantile=0.9}=8 sum=4 count=3\n");
  EXPECT_EQ(read("a_sum 4\na_bucket 3\n"), "untyped a_sum -: =4\nuntyped a_bucket -: =3\n");
}

struct Case {
  const char* page;
  const char* wrong;
};

class WrongPage : public testing::TestWithParam<Case> {};

TEST_P(WrongPage, IsWrongAsAWholeWithItsLine) { EXPECT_EQ(read(GetParam().page), GetParam().wrong); }

INSTANTIATE_TEST_SUITE_P(
    ReadPage, WrongPage,
    testing::Values(
        Case{"a 1\nb\n", "2: is not a sample"}, Case{"a 1\nb{x=1} 2\n", "2: is not a sample"},
        Case{"a 1 1700000000000\n", "1: a sample must end with its value; timestamps are not accepted"},
        Case{"7 1\n", "1: Prometheus accepts no name \"7\""},
        Case{"a{__name__=\"b\"} 1\n", "1: Prometheus accepts no label \"__name__\""},
        Case{"a{x=\"1\",x=\"2\"} 1\n", "1: the label x occurs twice"},
        Case{"ok 1\na{x=\"\xff\"} 1\n", "2: is not UTF-8 text"},
        Case{"a{x=\"1\",y=\"2\"} 1\na{y=\"2\",x=\"1\",z=\"\"} 1\n", "2: the same series as in line 1"},
        Case{"# TYPE a counter\na -1\n", "2: a counter must not be below 0, or NaN"},
        Case{"# TYPE a gauge\n# TYPE a gauge\n", "2: a second TYPE of a"},
        Case{"# HELP a A\n# HELP a A\n", "2: a second HELP of a"},
        Case{"a 1\n# TYPE a gauge\n", "2: TYPE must be before the samples of a"},
        Case{"# TYPE a info\n",
             "1: TYPE must be gauge, counter, histogram, summary or untyped, not \"info\""},
        Case{"# TYPE a histogram\na_sum 1\na_count 1\n",
             "2: the last bucket must have le=\"+Inf\" and the histogram's _count"},
        Case{"# TYPE a histogram\na_bucket{le=\"+Inf\"} 1\n",
             "2: the histogram must have one _sum and one _count"},
        Case{"# TYPE a histogram\na_bucket{le=\"1\"} 2\na_bucket{le=\"+Inf\"} 1\na_sum 1\na_count 1\n",
             "2: the counts of the buckets must not fall"},
        Case{"# TYPE a histogram\na_bucket 2\n", "2: the label le must be a number"},
        Case{"# TYPE a histogram\na 2\n", "2: a sample of a histogram ends with _bucket, _sum or _count"},
        Case{"# TYPE a summary\na{quantile=\"2\"} 2\n", "2: the label quantile must be from 0 to 1"},
        Case{"a 1\nb 1\nc 1\nd 1\ne 1\nf 1\ng 1\nh 1\ni 1\n", "9: the page has more than 8 series"},
        Case{"# gpumeter: expires soon\n",
             "1: must be `# gpumeter: expires DURATION`, where DURATION is a number with its unit, such as "
             "500ms, 5s or 1m30s, of at most 31 days"}));

}  // namespace
}  // namespace gpumeter::pages
