#include "exporter/http/routes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "collectors/api/catalog.hpp"
#include "collectors/api/event_ledger.hpp"
#include "collectors/jobs/model/run_list.hpp"
#include "exporter/store/series_list.hpp"
#include "tests/fakes/fake_clock.hpp"

namespace gpumeter {
namespace {

constexpr MetricDescriptor kUp{"gpu_up", "Up.", "", MetricType::gauge};
constexpr std::string_view kUpPage = "# HELP gpu_up Up.\n# TYPE gpu_up gauge\ngpu_up 1\n";

class RoutesTest : public testing::Test {
 protected:
  void SetUp() override {
    up_.add(kUp, {}, 1);
    up_.commit({});
  }

  HttpResponse get(std::string_view path) { return routes_.answer({.method = "GET", .path = path}); }
  HttpResponse query(std::vector<std::pair<std::string_view, std::string_view>> arguments) {
    return routes_.answer({.method = "GET", .path = "/metrics", .query = std::move(arguments)});
  }

  Machine machine_;
  Store store_;
  SeriesList up_{store_.attach("amd")};
  PageCache pages_{store_};
  Routes routes_{pages_,
                 store_,
                 {.web = {.max_requests = 2},
                  .devices = [] { return std::vector<DeviceStatus>{{.uuid = "u", .state = "ok"}}; },
                  .collectors =
                      [] {
                        return std::vector<CollectorState>{{"amd", true}, {"intel", false}};
                      },
                  .machine = &machine_,
                  .workloads =
                      [] {
                        return std::vector<WorkloadCost>{{.kind = "slurm_job", .workload = "7"},
                                                         {.kind = "other", .workload = "a/b"}};
                      }}};
};

TEST_F(RoutesTest, ServesTheCurrentPage) {
  const HttpResponse response = get("/metrics");
  EXPECT_EQ(response.status, 200U);
  EXPECT_EQ(response.content_type, "text/plain; version=0.0.4; charset=utf-8; escaping=underscores");
  EXPECT_EQ(response.page->bytes, kUpPage);
  EXPECT_TRUE(response.is_current);
}

TEST_F(RoutesTest, ServesWhatWasNegotiated) {
  const HttpResponse response = routes_.answer({.method = "HEAD",
                                                .path = "/metrics",
                                                .accept = "application/openmetrics-text;version=1.0.0",
                                                .accept_encoding = "gzip"});
  EXPECT_EQ(response.content_type,
            "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=underscores");
  EXPECT_EQ(response.page->format, Format::openmetrics);
  EXPECT_EQ(response.page->encoding, Encoding::gzip);
}

TEST_F(RoutesTest, ServesTheCostOfAllWorkloadsOrOfOne) {
  const auto count = [&](std::string_view path) {
    const std::string body = get(path).body;
    std::size_t found = 0;
    for (auto at = body.find("\"kind\""); at != std::string::npos; at = body.find("\"kind\"", at + 1))
      ++found;
    return found;
  };
  EXPECT_EQ(get("/api/v1/workloads").content_type, "application/json");
  EXPECT_EQ(count("/api/v1/workloads"), 2U);
  EXPECT_EQ(count("/api/v1/workloads/slurm_job/7"), 1U);
  EXPECT_EQ(count("/api/v1/workloads/other/a/b"), 1U);
  for (const char* path : {"/api/v1/workloads/", "/api/v1/workloads/slurm_job", "/api/v1/workloads/pod/7"}) {
    EXPECT_EQ(get(path).status, 404U) << path;
  }
  const HttpResponse line = routes_.answer(
      {.method = "GET", .path = "/api/v1/workloads/slurm_job/7", .query = {{"format", "text"}}});
  EXPECT_TRUE(line.body.starts_with("kind=slurm_job workload=7 state=running")) << line.body;
}

TEST_F(RoutesTest, ServesTheLastJudgement) {
  const HttpResponse response = get("/api/v1/health");
  EXPECT_EQ(response.content_type, "application/json");
  EXPECT_EQ(response.body, "{\"devices\":[\n],\"machine\":[],\"state\":\"unknown\"}\n");
}

TEST_F(RoutesTest, FiltersByCollector) {
  EXPECT_EQ(query({{"collect[]", "amd"}}).page->bytes, kUpPage);
  EXPECT_FALSE(query({{"collect[]", "amd"}}).is_current);
  EXPECT_EQ(query({{"exclude[]", "amd"}}).page->bytes, "");
  EXPECT_EQ(query({{"exclude[]", "unheard-of"}}).page->bytes, kUpPage);
}

TEST_F(RoutesTest, RefusesFiltersInNodeExportersWords) {
  const HttpResponse both = query({{"collect[]", "amd"}, {"exclude[]", "amd"}});
  EXPECT_EQ(both.status, 400U);
  EXPECT_EQ(both.body, "Combined collect and exclude queries are not allowed.");
  EXPECT_EQ(query({{"collect[]", "amd"}, {"collect[]", "x"}}).body,
            "Couldn't create filtered metrics handler: missing collector: x");
  EXPECT_EQ(query({{"collect[]", "intel"}}).body,
            "Couldn't create filtered metrics handler: disabled collector: intel");
}

TEST_F(RoutesTest, ServesDcgmExportersNames) {
  EXPECT_EQ(query({{"names", "gpumeter"}}).page->bytes, kUpPage);
  for (const std::string_view names : {"dcgm", "dcgm-4.8", "dcgm-4.9"}) {
    const HttpResponse response = query({{"names", names}});
    EXPECT_EQ(response.status, 200U);
    EXPECT_FALSE(response.is_current);
    EXPECT_EQ(response.page->bytes, "") << "no NVIDIA card";
  }
  const HttpResponse response = routes_.answer({.method = "GET",
                                                .path = "/metrics",
                                                .query = {{"names", "dcgm"}},
                                                .accept = "application/openmetrics-text;version=1.0.0"});
  EXPECT_EQ(response.page->bytes, "# EOF\n");
}

TEST_F(RoutesTest, RefusesUnknownNames) {
  const HttpResponse response = query({{"names", "nvml"}});
  EXPECT_EQ(response.status, 400U);
  EXPECT_EQ(response.body, "names: unknown value. Use one of gpumeter, dcgm, dcgm-4.8, dcgm-4.9.\n");
}

TEST_F(RoutesTest, ServesTheLevelThatIsAsked) {
  constexpr MetricDescriptor kOnlyFull{"only_full", "F.", "", MetricType::gauge, kFullPageOnly};
  constexpr std::string_view kMore = "# HELP only_full F.\n# TYPE only_full gauge\nonly_full 2\n";
  SeriesList more(store_.attach("amd"));
  more.add(kOnlyFull, {}, 2);
  more.commit({});
  const std::string both = std::string(kUpPage).append(kMore);
  pages_.select({.detail = MetricsDetail::standard});
  EXPECT_EQ(get("/metrics").page->bytes, kUpPage);
  EXPECT_EQ(query({{"detail", "standard"}}).page->bytes, kUpPage);
  EXPECT_EQ(query({{"detail", "full"}}).page->bytes, both);
  EXPECT_TRUE(query({{"detail", "full"}}).is_current);
  EXPECT_EQ(query({{"detail", "full"}, {"collect[]", "amd"}}).page->bytes, both);
  EXPECT_EQ(query({{"detail", "all"}}).status, 400U);
  EXPECT_EQ(query({{"detail", "all"}}).body, "detail: unknown value. Use one of standard, full.\n");
}

TEST_F(RoutesTest, LimitsPagesUnderWayAndNothingElse) {
  const HttpResponse refused = routes_.answer({.method = "GET", .path = "/metrics", .in_flight = 3});
  EXPECT_EQ(refused.status, 503U);
  EXPECT_EQ(refused.body, "Limit of concurrent requests reached (2), try again later.\n");
  EXPECT_EQ(routes_.answer({.method = "GET", .path = "/metrics", .in_flight = 2}).status, 200U);
  EXPECT_EQ(routes_.answer({.method = "GET", .path = "/-/healthy", .in_flight = 3}).status, 200U);
}

TEST_F(RoutesTest, TellsHealthAndReadiness) {
  EXPECT_EQ(get("/-/healthy").body, "OK\n");
  EXPECT_EQ(get("/-/ready").status, 503U);
  routes_.set_ready();
  EXPECT_EQ(get("/-/ready").status, 200U);
  EXPECT_EQ(get("/-/ready").body, "OK\n");
}

TEST_F(RoutesTest, ServesDevicesForPeopleAndPrograms) {
  EXPECT_EQ(get("/").content_type, "text/html; charset=utf-8");
  EXPECT_EQ(get("/api/v1/devices").content_type, "application/json");
}

TEST_F(RoutesTest, ServesSeriesThatMatch) {
  const auto series = [&](std::vector<std::pair<std::string_view, std::string_view>> arguments) {
    return routes_.answer({.method = "GET", .path = "/api/v1/series", .query = std::move(arguments)});
  };
  EXPECT_EQ(series({}).content_type, "application/json");
  EXPECT_NE(series({{"match", "gpu_down"}, {"match[]", "gpu_up"}}).body.find("\"gpu_up\""),
            std::string::npos);
  EXPECT_EQ(series({{"match", "gpu_down"}}).body, "{\"series\":[\n]}\n");
  EXPECT_EQ(series({{"match", "gpu_up{"}}).status, 400U);
  EXPECT_EQ(routes_.answer({.method = "GET", .path = "/api/v1/series", .in_flight = 3}).status, 503U);
}

TEST_F(RoutesTest, RefusesOtherPathsMethodsAndBodies) {
  EXPECT_EQ(get("/metrics/").status, 404U);
  EXPECT_EQ(get("").body, "Not found.\n");
  const HttpResponse post = routes_.answer({.method = "POST", .path = "/metrics", .has_body = true});
  EXPECT_EQ(post.status, 405U);
  EXPECT_STREQ(post.headers.back().name, "Allow");
  EXPECT_STREQ(post.headers.back().value, "GET, HEAD");
  const HttpResponse body = routes_.answer({.method = "GET", .path = "/metrics", .has_body = true});
  EXPECT_EQ(body.status, 413U);
  EXPECT_TRUE(body.close);
  const HttpResponse chunked = routes_.answer({.method = "GET", .path = "/metrics", .is_chunked = true});
  EXPECT_EQ(chunked.status, 400U);
  EXPECT_TRUE(chunked.close);
}

class BrowserRoutesTest : public testing::Test {
 protected:
  BrowserRoutesTest() {
    SeriesList up(store_.attach());
    up.add(catalog::up, Labels(DeviceInfo{.uuid = "GPU-a"}, 0, "", {}), 1);
    up.commit({});
    history_.sample();
    machine_.history = &history_;
    machine_.live = &live_;
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
  Machine machine_;
  LiveAnswers live_{history_, clock_, machine_.health};
  PageCache pages_{store_};
  Routes routes_{pages_,
                 store_,
                 {.web = {.max_requests = 2},
                  .devices = [] { return std::vector<DeviceStatus>{{.uuid = "GPU-a", .state = "ok"}}; },
                  .machine = &machine_}};
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

TEST_F(BrowserRoutesTest, StreamsToWhoeverAsks) {
  EXPECT_EQ(get("/api/v1/stream").status, 404U) << "there is no ledger of events";
  machine_.events = std::make_shared<EventLedger>(clock_);
  const HttpResponse response = get("/api/v1/stream", {.in_flight = 3});
  EXPECT_EQ(response.content_type, "text/event-stream");
  EXPECT_NE(response.stream, nullptr);
  EXPECT_EQ(header(response, "X-Accel-Buffering"), "no");
  EXPECT_EQ(header(response, "Cache-Control"), "no-store");
  EXPECT_EQ(get("/api/v1/events").stream, nullptr);
  EXPECT_NE(get("/api/v1/events", {.accept = "text/event-stream"}).stream, nullptr);
  machine_.live = nullptr;
  EXPECT_EQ(get("/api/v1/stream").status, 404U) << "there are no live values";
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
