#include "exporter/web/pages.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "exporter/health/conditions.hpp"
#include "exporter/json/api.hpp"

namespace gpumeter {
namespace {

std::vector<DeviceStatus> devices() {
  return {{.index = 0,
           .uuid = "GPU-1",
           .vendor = "nvidia",
           .model = "H100 <\"&\">",
           .pci_address = "0000:17:00.0",
           .collector = "nvidia",
           .driver = "nvidia",
           .up = true,
           .state = "ok",
           .last_success_timestamp_seconds = 1700000000.25},
          {.index = 1, .uuid = "\xFF", .collector = "amd", .state = "lost"}};
}

std::vector<UnreadDevice> unread() {
  return {{"0000:65:00.0", "amd", "1002:73bf", "", "amdgpu", "no driver", "modprobe amdgpu"}};
}

TEST(DevicePages, ListsDevicesAsJson) {
  EXPECT_EQ(devices_json(devices(), unread()), R"({
  "devices": [
    {
      "index": 0,
      "uuid": "GPU-1",
      "vendor": "nvidia",
      "model": "H100 <\"&\">",
      "pci_address": "0000:17:00.0",
      "collector": "nvidia",
      "driver": "nvidia",
      "up": true,
      "state": "ok",
      "last_success_timestamp_seconds": 1700000000.25
    },
    {
      "index": 1,
      "uuid": ")"
                                               R"(\ufffd)"
                                               R"(",
      "vendor": null,
      "model": null,
      "pci_address": null,
      "collector": "amd",
      "driver": null,
      "up": false,
      "state": "lost",
      "last_success_timestamp_seconds": null
    }
  ],
  "unread": [
    {
      "pci_address": "0000:65:00.0",
      "vendor": "amd",
      "pci_id": "1002:73bf",
      "driver": null,
      "module": "amdgpu",
      "why": "no driver",
      "remedy": "modprobe amdgpu"
    }
  ]
}
)");
  EXPECT_EQ(devices_json({}, {}), "{\n  \"devices\": [],\n  \"unread\": []\n}\n");
}

/// The part of the page that depends on the machine.
std::string body_of(const std::string& page) {
  const std::size_t begin = page.find("<section id=\"static\" aria-label=\"Devices\">\n");
  return page.substr(begin, page.find("<noscript>") - begin);
}
std::string footer_of(const std::string& page) { return page.substr(page.find("<footer>")); }

constexpr BuildFacts kBuild{
    .version = "1.2.3", .revision = "abc", .branch = "main", .compiler = "GNU 12.2.0"};
TEST(DevicePages, ShowsDevicesAsATable) {
  EXPECT_EQ(
      body_of(status_page(devices(), {}, "/m", kBuild)),
      "<section id=\"static\" aria-label=\"Devices\">\n"
      "<table>\n<tr><th scope=\"col\">GPU</th><th scope=\"col\">Vendor</th><th scope=\"col\">Model</th>"
      "<th scope=\"col\">PCI address</th><th scope=\"col\">UUID</th><th scope=\"col\">Up</th></tr>\n"
      "<tr><td>0</td><td>nvidia</td><td>H100 &lt;&quot;&amp;&quot;&gt;</td><td>0000:17:00.0</td>"
      "<td>GPU-1</td><td>yes</td></tr>\n"
      "<tr class=\"is-failed\"><td>1</td><td></td><td></td><td></td><td>\xFF</td><td>no, lost</td></tr>\n"
      "</table>\n\n");
}

TEST(DevicePages, LinksAreRelative) {
  EXPECT_EQ(
      footer_of(status_page({}, {}, "/m", kBuild)),
      "<footer>\n<p><a href=\"./m\">Metrics</a> &middot; <a href=\"./api/v1/devices\">Devices as JSON</a> "
      "&middot; "
      "<a href=\"./api/v1/series\">Series as JSON</a> &middot; <a href=\"./api/v1/live\">Live values as "
      "JSON</a> "
      "&middot; <a href=\"./-/healthy\">Healthy</a> &middot; <a href=\"./-/ready\">Ready</a> &middot; "
      "<a href=\"./runbooks\">Runbooks</a></p>\n"
      "<p>gpumeter 1.2.3, revision abc, GNU 12.2.0</p>\n</footer>\n</body>\n</html>\n");
}

TEST(DevicePages, ShowsGpusThatNobodyReads) {
  EXPECT_EQ(body_of(status_page({}, unread(), "/m", kBuild)),
            "<section id=\"static\" aria-label=\"Devices\">\n<p>No device is known.</p>\n"
            "<h2>On the bus, not read</h2>\n<ul class=\"reasons\">\n"
            "<li>0000:65:00.0 amd 1002:73bf (no driver): no driver; modprobe amdgpu</li>\n</ul>\n\n");
}

TEST(DevicePages, SaysWhenThereIsNoDevice) {
  EXPECT_EQ(body_of(status_page({}, {}, "/m", kBuild)),
            "<section id=\"static\" aria-label=\"Devices\">\n<p>No device is known.</p>\n\n");
}

TEST(RunbooksPage, EveryConditionHasItsSection) {
  const std::string page = assets::unpacked(assets::kRunbooks);
  for (const health::Condition& condition : health::all_conditions()) {
    EXPECT_NE(page.find("<h2 id=\"" + runbook_of(condition) + "\">"), std::string::npos) << condition.reason;
  }
}

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
