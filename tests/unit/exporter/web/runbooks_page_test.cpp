#include "exporter/web/runbooks_page.hpp"

#include <gtest/gtest.h>

#include "exporter/health/conditions.hpp"
#include "exporter/web/assets.hpp"

namespace gpumeter {
namespace {

std::string body_of(const std::string& page) {
  constexpr std::string_view kBegin = "All GPUs</a></p>\n";
  const std::size_t begin = page.find(kBegin) + kBegin.size();
  return page.substr(begin, page.find("</main>") - begin);
}

TEST(RunbooksPage, HasParagraphsListsTablesAndHeadingsWithAnchors) {
  EXPECT_EQ(body_of(runbooks_page(
                "# Runbooks\n\none\ntwo\n\n| a | b |\n|---|---|\n| 1 | `2` |\n\n## GpuLost\nGone.\n\n"
                "- **Look at** x\n  and y\n- **Do** z\n\nEnd")),
            "<h1 id=\"runbooks\">Runbooks</h1>\n<p>one two</p>\n"
            "<table>\n<tr><th>a</th><th>b</th></tr>\n<tr><td>1</td><td><code>2</code></td></tr>\n</table>\n"
            "<h2 id=\"gpulost\">GpuLost</h2>\n<p>Gone.</p>\n"
            "<ul>\n<li><strong>Look at</strong> x and y</li>\n<li><strong>Do</strong> "
            "z</li>\n</ul>\n<p>End</p>\n");
}

TEST(RunbooksPage, OnlySectionsOfThePageAreLinks) {
  EXPECT_EQ(body_of(runbooks_page("see [GpuLost](#gpulost) and [all](conditions.md), [x] (y)\n")),
            "<p>see <a href=\"#gpulost\">GpuLost</a> and all, [x] (y)</p>\n");
}

TEST(RunbooksPage, TextIsNoMarkup) {
  EXPECT_EQ(body_of(runbooks_page("a <b> & `<c>` ** d\n")),
            "<p>a &lt;b&gt; &amp; <code>&lt;c&gt;</code> ** d</p>\n");
}

TEST(RunbooksPage, EveryConditionHasItsSection) {
  const std::string page = runbooks_page(assets::unpacked(assets::kRunbooks));
  for (const health::Condition& condition : health::all_conditions()) {
    EXPECT_NE(page.find("<h2 id=\"" + runbook_of(condition) + "\">"), std::string::npos) << condition.reason;
  }
}

}  // namespace
}  // namespace gpumeter
