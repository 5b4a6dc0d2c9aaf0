#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <string>
#include <tuple>

#include "exporter/otlp/encoder.hpp"
#include "exporter/otlp/part.hpp"
#include "exporter/otlp/pusher.hpp"
#include "tests/fakes/fake_clock.hpp"

namespace gpumeter::otlp {
namespace {

constexpr MetricDescriptor kPower{"gpu_rail_watts", "Power.", "watts", MetricType::gauge};

/// The settings with these variables; the endpoint is the error's text if they are wrong.
Settings with(const std::map<std::string, std::string>& set, Settings settings = {}) {
  const auto value_of = [&set](const std::string& name) { return set.contains(name) ? set.at(name) : ""; };
  Result<Settings> result = with_variables(std::move(settings), value_of);
  return result ? *result : Settings{.endpoint = result.error().message()};
}

TEST(OtlpVariables, NameTheReceiver) {
  EXPECT_EQ(with({}).endpoint, "");
  EXPECT_EQ(with({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318"}}).endpoint, "http://c:4318/v1/metrics");
  EXPECT_EQ(with({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c/otlp/"}}).endpoint, "http://c/otlp/v1/metrics");
  EXPECT_EQ(
      with({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"}, {"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://m"}})
          .endpoint,
      "http://m");
  const std::map<std::string, std::string> other = {{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://m"}};
  EXPECT_EQ(with(other, {.endpoint = "https://key:1"}).endpoint, "https://key:1/v1/metrics");
  EXPECT_EQ(with(other, {.endpoint = "https://key/push"}).endpoint, "https://key/push");
}

TEST(OtlpVariables, StandInForKeysThatHaveTheirDefault) {
  const std::map<std::string, std::string> set = {
      {"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"},
      {"OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Bearer%20a%3Db, x = 1 ,y=%,z=%4"},
      {"OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", "2500"},
      {"OTEL_EXPORTER_OTLP_TIMEOUT", "1"},
      {"OTEL_METRIC_EXPORT_INTERVAL", "5000"},
      {"OTEL_EXPORTER_OTLP_COMPRESSION", "none"},
      {"OTEL_EXPORTER_OTLP_CERTIFICATE", "/ca.pem"},
      {"OTEL_EXPORTER_OTLP_METRICS_CLIENT_KEY", "/key.pem"},
      {"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", "/cert.pem"}};
  Settings expected{.endpoint = "http://c/v1/metrics",
                    .interval = std::chrono::seconds(5),
                    .timeout = std::chrono::milliseconds(2500),
                    .headers = {{"Authorization", "Bearer a=b"}, {"x", "1"}, {"y", "%"}, {"z", "%4"}},
                    .compression = Compression::none,
                    .ca_file = "/ca.pem",
                    .cert_file = "/cert.pem",
                    .key_file = "/key.pem"};
  EXPECT_EQ(with(set), expected);
  expected.headers = {{"k", "v"}};
  expected.interval = std::chrono::seconds(7);
  expected.ca_file = "/mine.pem";
  EXPECT_EQ(with(set, {.interval = expected.interval, .headers = expected.headers, .ca_file = "/mine.pem"}),
            expected);
}

TEST(OtlpVariables, AreRejectedByName) {
  const auto error = [](const std::string& name, const std::string& value) {
    return with({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"}, {name, value}}).endpoint;
  };
  EXPECT_EQ(with({{"OTEL_EXPORTER_OTLP_ENDPOINT", "c:4317"}}).endpoint,
            "OTEL_EXPORTER_OTLP_ENDPOINT must be a URL such as https://collector:4318, not \"c:4317\"");
  EXPECT_EQ(error("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "m/v1"),
            "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT must be a URL such as https://collector:4318, not \"m/v1\"");
  EXPECT_EQ(error("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            "OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf, not \"grpc\"");
  EXPECT_EQ(error("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "delta"),
            "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE must be cumulative, not \"delta\"");
  EXPECT_EQ(error("OTEL_EXPORTER_OTLP_TIMEOUT", "10s"),
            "OTEL_EXPORTER_OTLP_TIMEOUT (milliseconds) must be at most 1m, and not 0");
  EXPECT_EQ(error("OTEL_METRIC_EXPORT_INTERVAL", "10"),
            "OTEL_METRIC_EXPORT_INTERVAL (milliseconds) must be at least 1s");
}

TEST(OtlpVariables, IdentifyTheSender) {
  const auto none = [](const std::string&) { return std::string(); };
  const Attributes plain = resource_of("node1", "", none);
  EXPECT_EQ(plain.at("service.instance.id"), "node1");
  EXPECT_FALSE(plain.contains("host.id"));
  const std::map<std::string, std::string> set = {
      {"K8S_NODE_NAME", "k1"},
      {"OTEL_RESOURCE_ATTRIBUTES", "service.name=a,deployment.environment=test%2C1"},
      {"OTEL_SERVICE_NAME", "b"}};
  const Attributes given = resource_of(
      "pod-x", "abc", [&set](const std::string& name) { return set.contains(name) ? set.at(name) : ""; });
  EXPECT_EQ(given.at("service.instance.id"), "k1");
  EXPECT_EQ(given.at("k8s.node.name"), "k1");
  EXPECT_EQ(given.at("host.id"), "abc");
  EXPECT_EQ(given.at("service.name"), "b");
  EXPECT_EQ(given.at("deployment.environment"), "test,1");
}

TEST(OtlpEncoder, SplitsAnExportBetweenPoints) {
  Store store;
  Source source = store.attach();
  for (int rail = 0; rail < 100; ++rail)
    source.set(source.add(kPower, {{"rail", std::to_string(rail)}}), rail);
  source.commit({});
  const PageSelection all{.detail = MetricsDetail::full};
  Encoder whole(store, all, {}, true);
  ASSERT_EQ(whole.encode({}).size(), 1U);
  EXPECT_EQ(whole.encode({}).front().points, 100U);
  constexpr std::size_t kLargest = 500;
  Encoder split(store, all, {}, true, kLargest);
  std::size_t points = 0;
  const std::vector<Request> requests = split.encode({});
  for (const Request& request : requests) {
    points += request.points;
    EXPECT_LE(request.body.size(), kLargest + 200);  // the resource, the scope and the family
  }
  EXPECT_GT(requests.size(), 5U);
  EXPECT_EQ(points, 100U);
  EXPECT_EQ(Encoder(Store(), all, {}, true).encode({}).size(), 0U);
}

const std::string kTrace = "4bf92f3577b34da6a3ce929d0e0e4736";

/// The last point of an export of a histogram with the bounds 1, 2^(1/8) and 2^(2/8), in its metric.
std::string point_with(double above_last, bool is_traced = false) {
  static constexpr MetricDescriptor kSeconds{"s_seconds", "S.", "seconds", MetricType::histogram};
  Store store;
  Source source = store.attach();
  for (const auto& [le, count, part] : {std::tuple("1.0", 2.0, SeriesPart::bucket),
                                        std::tuple("1.0905077326652577", 5.0, SeriesPart::fine_bucket),
                                        std::tuple("1.189207115002721", 9.0, SeriesPart::bucket),
                                        std::tuple("+Inf", 9 + above_last, SeriesPart::bucket)})
    source.set(source.add(kSeconds, {{"le", le}}, part), count);
  source.set(source.add(kSeconds, {}, SeriesPart::sum), 1);
  source.set(source.add(kSeconds, {}, SeriesPart::count, 1), 9 + above_last);
  if (is_traced) source.exemplify(1, {1.0625, 1.5, kTrace, "00f067aa0ba902b7"});
  source.commit({});
  Encoder encoder(store, {.detail = MetricsDetail::full}, {}, false);
  const std::string body = encoder.encode({{}, std::chrono::seconds(2)}).front().body;
  return body.substr(body.rfind("\x1a\x01s") + 3);  // the unit
}
std::string fixed64(std::uint64_t value) { return {reinterpret_cast<const char*>(&value), sizeof(value)}; }
std::string number(double value) { return {reinterpret_cast<const char*>(&value), sizeof(value)}; }

TEST(OtlpEncoder, SendsExactExponentialHistograms) {
  using std::string_literals::operator""s;
  const std::string times = "\x11" + fixed64(1'000'000'000) + "\x19" + fixed64(2'000'000'000);
  const std::string point = times + "\x21" + fixed64(9) + "\x29" + number(1) + "\x30\x06" + "\x39" +
                            fixed64(2) + "\x71" + number(1) +     // scale 3, zero_count, zero_threshold
                            "\x42\x06\x08\x00\x12\x02\x03\x04"s;  // positive: 3 in (1, 2^(1/8)], then 4
  const std::string metric = "\x0a" + std::string(1, static_cast<char>(point.size())) + point + "\x10\x02";
  EXPECT_EQ(point_with(0), "\x52" + std::string(1, static_cast<char>(metric.size())) + metric);
  EXPECT_EQ(point_with(1).front(), '\x4a') << "a histogram with bounds: one value is above the last";
}

TEST(OtlpEncoder, SendsExemplarsWithTheBytesOfTheirTraces) {
  using std::string_literals::operator""s;
  const std::string exemplar = "\x11" + fixed64(1'500'000'000) + "\x19" + number(1.0625) +
                               "\x22\x08\x00\xf0\x67\xaa\x0b\xa9\x02\xb7"s +
                               "\x2a\x10\x4b\xf9\x2f\x35\x77\xb3\x4d\xa6\xa3\xce\x92\x9d\x0e\x0e\x47\x36";
  EXPECT_NE(point_with(0, true).find("\x5a\x2e" + exemplar), std::string::npos) << "field 11";
  EXPECT_NE(point_with(1, true).find("\x42\x2e" + exemplar), std::string::npos) << "field 8 of a classic one";
}

TEST(OtlpAnswer, HasRejectedPointsAndWords) {
  using std::string_literals::operator""s;
  // {partial_success: {rejected_data_points: 3, error_message: "too old", and a field of a later version}}
  const auto partial = decode_answer("\x0a\x0d\x08\x03\x12\x07too old\x18\x01"s, true);
  ASSERT_TRUE(partial);
  EXPECT_EQ(partial->rejected, 3);
  EXPECT_EQ(partial->message, "too old");
  EXPECT_EQ(decode_answer("", true)->rejected, 0);
  EXPECT_EQ(decode_answer("\x08\x03\x12\x02no"s, false)->message, "no");  // a google.rpc.Status
  EXPECT_FALSE(decode_answer("\x0a\x7f"s, true));
  EXPECT_FALSE(decode_answer("<html>", false));
}

TEST(Pusher, DropsTheOldestMessagesOfAFullQueueAndCountsThem) {
  FakeClock clock;
  push::Target target{.url = "http://127.0.0.1:1/", .headers = {}, .is_compressed = false};
  const auto judge = [](std::string_view, bool) { return push::Verdict{}; };
  const auto opened = push::Pusher::open(target, judge, clock);
  ASSERT_TRUE(opened) << opened.error().message();
  push::Pusher& pusher = **opened;
  EXPECT_EQ(pusher.due(), Nanoseconds::max());
  constexpr std::size_t kMessage = std::size_t{1} << 20U;
  for (std::size_t i = 1; i <= 20; ++i) pusher.add({std::string(kMessage, 'x'), i});
  EXPECT_EQ(pusher.figures().dropped, 1U + 2 + 3 + 4);
  EXPECT_EQ(pusher.figures().queued_bytes, push::Pusher::kMostQueued);
  pusher.send(clock.monotonic() + std::chrono::seconds(1));
  EXPECT_NE(pusher.figures().problem, "");
  const Nanoseconds pause = pusher.due() - clock.monotonic();
  EXPECT_GE(pause, std::chrono::milliseconds(500));
  EXPECT_LE(pause, std::chrono::seconds(1));
  for (int failures = 0; failures < 12; ++failures) {
    clock.advance(pusher.due() - clock.monotonic());
    pusher.send(clock.monotonic() + std::chrono::seconds(1));
  }
  EXPECT_GE(pusher.due() - clock.monotonic(), std::chrono::minutes(1));
  EXPECT_LE(pusher.due() - clock.monotonic(), std::chrono::minutes(2));
  EXPECT_EQ(pusher.figures().sent, 0U);
}

}  // namespace
}  // namespace gpumeter::otlp
