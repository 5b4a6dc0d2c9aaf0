#include "exporter/http/browser_routes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "collectors/api/catalog.hpp"
#include "exporter/http/routes.hpp"
#include "exporter/store/series_list.hpp"
#include "tests/fakes/fake_clock.hpp"

namespace gpumeter {
namespace {

class BrowserRoutesTest : public testing::Test {
 protected:
  BrowserRoutesTest() {
    SeriesList up(store_.attach());
    up.add(catalog::up, Labels(DeviceInfo{.uuid = "GPU-a"}, 0, "", {}), 1);
    up.commit({});
    history_.sample();
  }
  HttpResponse get(std::string_view path, HttpRequest request = {}) {
    request.method = "GET";
    request.path = path;
    return routes_.answer(request);
  }
  static std::string header(const HttpResponse& response, std::string_view name) {
    const auto found = std::ranges::find(response.headers, name,
                                         [](const HttpHeader& each) { return std::string_view(each.name); });
    return found == response.headers.end() ? "" : found->value;
  }

  FakeClock clock_;
  Store store_;
  History history_{store_, clock_};
  LiveAnswers live_{history_, clock_, [] { return nullptr; }};
  PageCache pages_{store_};
  Routes routes_{pages_,
                 store_,
                 {.max_requests = 2,
                  .devices = [] { return std::vector<DeviceStatus>{{.uuid = "GPU-a", .state = "ok"}}; },
                  .history = &history_,
                  .live = &live_}};
};

TEST_F(BrowserRoutesTest, ThePageMayLoadItsOwnFilesOnly) {
  EXPECT_EQ(
      header(get("/"), "Content-Security-Policy"),
      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
      "base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
}

TEST_F(BrowserRoutesTest, AFileThatTheBrowserHasIsNotSentAgain) {
  for (const char* path : {"/", "/gpumeter.js", "/gpumeter.css", "/runbooks"}) {
    const HttpResponse first = get(path);
    EXPECT_EQ(first.status, 200U) << path;
    EXPECT_FALSE(first.bytes->empty());
    EXPECT_EQ(header(first, "Cache-Control"), "no-cache");
    const HttpResponse again = get(path, {.if_none_match = first.etag});
    EXPECT_EQ(again.status, 304U) << path;
    EXPECT_EQ(again.etag, first.etag);
    EXPECT_EQ(again.bytes, nullptr);
    EXPECT_EQ(get(path, {.if_none_match = "\"other\""}).status, 200U) << path;
  }
}

TEST_F(BrowserRoutesTest, CompressesOnRequest) {
  for (const char* path : {"/", "/gpumeter.js", "/gpumeter.css", "/api/v1/live"}) {
    EXPECT_EQ(get(path).encoding, Encoding::identity) << path;
    const HttpResponse response = get(path, {.accept_encoding = "gzip"});
    EXPECT_EQ(response.encoding, Encoding::gzip) << path;
    EXPECT_TRUE(response.bytes->starts_with("\x1F\x8B")) << path;
    EXPECT_EQ(header(response, "Vary"), "Accept-Encoding") << path;
  }
}

TEST_F(BrowserRoutesTest, AllBrowsersShareTheLiveValues) {
  const HttpResponse response = get("/api/v1/live");
  EXPECT_EQ(response.content_type, "application/json");
  EXPECT_EQ(get("/api/v1/live").bytes, response.bytes);
  EXPECT_EQ(response.bytes->find("\"utilization\":["), std::string::npos);
  EXPECT_NE(get("/api/v1/live", {.query = {{"sparklines", "1"}}}).bytes->find("\"utilization\":["),
            std::string::npos);
}

TEST_F(BrowserRoutesTest, ServesTheHistory) {
  EXPECT_TRUE(get("/api/v1/history", {.query = {{"gpu", "0"}}}).bytes->starts_with("{\"gpu\":\"0\","));
  const HttpResponse wrong = get("/api/v1/history", {.query = {{"gpu", "0"}, {"range", "1h"}}});
  EXPECT_EQ(wrong.status, 400U);
  EXPECT_TRUE(wrong.body.starts_with("range=1h: use gpu=INDEX"));
}

TEST_F(BrowserRoutesTest, LimitsHistoriesUnderWayAndNothingElse) {
  EXPECT_EQ(get("/api/v1/history", {.query = {{"gpu", "0"}}, .in_flight = 3}).status, 503U);
  EXPECT_EQ(get("/api/v1/live", {.in_flight = 3}).status, 200U);
}

}  // namespace
}  // namespace gpumeter
