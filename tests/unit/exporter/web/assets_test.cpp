#include "exporter/web/assets.hpp"

#include <gtest/gtest.h>

namespace gpumeter {
namespace {

TEST(Assets, AreTheFilesOfTheFolder) {
  EXPECT_TRUE(assets::kPage.starts_with("<!DOCTYPE html>\n"));
  EXPECT_TRUE(assets::kPage.ends_with("</html>\n"));
  EXPECT_TRUE(assets::unpacked(assets::kStyle).starts_with(":root {"));
  const std::string script = assets::unpacked(assets::kScript);
  EXPECT_TRUE(script.starts_with("'use strict';"));
  EXPECT_TRUE(script.ends_with("new Page();\n"));
  EXPECT_EQ(assets::unpacked(assets::kScript.substr(0, 2000)), "") << "cut";
  EXPECT_EQ(assets::unpacked(""), "");
}

// What the Content-Security-Policy forbids, and HTML from texts.
TEST(Assets, HaveNoInlineScriptStyleOrHtml) {
  for (const std::string_view wrong : {"<style", " style=\"", "onclick", "<script>", "http://", "https://"}) {
    const std::size_t found = assets::kPage.find(wrong);
    const bool is_namespace = found != std::string_view::npos &&
                              assets::kPage.substr(found).starts_with("http://www.w3.org/2000/svg");
    EXPECT_TRUE(found == std::string_view::npos || is_namespace) << wrong;
  }
  const std::string script = assets::unpacked(assets::kScript);
  for (const std::string_view wrong :
       {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "https://"}) {
    EXPECT_EQ(script.find(wrong), std::string::npos) << wrong;
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
