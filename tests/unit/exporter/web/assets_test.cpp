#include "exporter/web/assets.hpp"

#include <gtest/gtest.h>

namespace gpumeter {
namespace {

TEST(Assets, AreTheFilesOfTheFolder) {
  EXPECT_TRUE(assets::kPage.starts_with("<!DOCTYPE html>\n"));
  EXPECT_TRUE(assets::kPage.ends_with("</html>\n"));
  EXPECT_TRUE(assets::kStyle.starts_with(":root {"));
  EXPECT_TRUE(assets::kScript.starts_with("'use strict';"));
  EXPECT_TRUE(assets::kScript.ends_with("new Page();\n"));
}

// What the Content-Security-Policy forbids, and HTML from texts.
TEST(Assets, HaveNoInlineScriptStyleOrHtml) {
  for (const std::string_view wrong : {"<style", " style=\"", "onclick", "<script>", "http://", "https://"}) {
    const std::size_t found = assets::kPage.find(wrong);
    const bool is_namespace = found != std::string_view::npos &&
                              assets::kPage.substr(found).starts_with("http://www.w3.org/2000/svg");
    EXPECT_TRUE(found == std::string_view::npos || is_namespace) << wrong;
  }
  for (const std::string_view wrong :
       {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "https://"}) {
    EXPECT_EQ(assets::kScript.find(wrong), std::string_view::npos) << wrong;
  }
}

TEST(Assets, TheTagFollowsTheBytes) {
  EXPECT_EQ(etag_of(""), "\"cbf29ce484222325\"");
  EXPECT_EQ(etag_of("a"), "\"af63dc4c8601ec8c\"");
}

TEST(Assets, ComparesTagsWeakly) {
  EXPECT_TRUE(matches_etag("\"a\"", "\"a\""));
  EXPECT_TRUE(matches_etag("\"b\" ,\tW/\"a\"", "\"a\""));
  EXPECT_TRUE(matches_etag("*", "\"a\""));
  EXPECT_FALSE(matches_etag("\"b\"", "\"a\""));
  EXPECT_FALSE(matches_etag("", "\"a\""));
  EXPECT_FALSE(matches_etag(",,", "\"a\""));
}

}  // namespace
}  // namespace gpumeter
