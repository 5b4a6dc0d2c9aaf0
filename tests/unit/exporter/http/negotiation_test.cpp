#include "exporter/http/negotiation.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/fakes/places.hpp"

namespace gpumeter {
namespace {

std::string type_for(std::string_view accept) { return std::string(negotiate_format(accept).content_type); }

const std::string kText = "text/plain; version=0.0.4; charset=utf-8; escaping=";
const std::string kOpenMetrics = "application/openmetrics-text; version=1.0.0; charset=utf-8; escaping=";
const std::string kProtobuf =
    "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited; escaping=";
const std::string kOldOpenMetrics = "application/openmetrics-text; version=0.0.1; charset=utf-8; escaping=";

TEST(Negotiate, GivesTextToWhoAcceptsAnythingOrNothingKnown) {
  for (const char* accept :
       {"", "*/*", "text/*", "text/html,application/xhtml+xml,*/*;q=0.8", "image/png",
        "application/openmetrics-text;version=2.0.0", ";;,,;q=,", "text/plain;version=9"}) {
    EXPECT_EQ(type_for(accept), kText + "underscores") << accept;
    EXPECT_EQ(negotiate_format(accept).format, Format::text) << accept;
  }
}

TEST(Negotiate, MatchesVersionsAndTypesInAnyCase) {
  EXPECT_EQ(type_for("application/openmetrics-text;version=1.0.0"), kOpenMetrics + "underscores");
  EXPECT_EQ(type_for("Application/OpenMetrics-Text ; Version=\"1.0.0\""), kOpenMetrics + "underscores");
  EXPECT_EQ(type_for("application/openmetrics-text"), kOldOpenMetrics + "underscores");
  EXPECT_EQ(type_for("application/*"), kOpenMetrics + "underscores");
  EXPECT_EQ(negotiate_format("application/openmetrics-text").format, Format::openmetrics);
}

TEST(Negotiate, GivesProtobufToWhoAsksForItsMessageAndEncoding) {
  const std::string message = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily";
  EXPECT_EQ(type_for(message + ";encoding=delimited;q=0.6,text/plain;q=0.3"), kProtobuf + "underscores");
  EXPECT_EQ(negotiate_format(message + ";encoding=delimited").format, Format::protobuf);
  for (const std::string& other : {message, message + ";encoding=text",
                                   std::string("application/vnd.google.protobuf;encoding=delimited")}) {
    EXPECT_EQ(type_for(other), kText + "underscores") << other;
  }
}

TEST(Negotiate, PrefersByQualityThenByExactnessThenByPlace) {
  EXPECT_EQ(type_for("text/plain;q=0.4,application/openmetrics-text;version=1.0.0;q=0.5"),
            kOpenMetrics + "underscores");
  EXPECT_EQ(type_for("*/*,application/openmetrics-text;version=1.0.0"), kOpenMetrics + "underscores");
  EXPECT_EQ(type_for("text/plain,application/openmetrics-text;version=1.0.0"), kText + "underscores");
  EXPECT_EQ(type_for("application/openmetrics-text;version=1.0.0;q=0"), kText + "underscores");
  EXPECT_EQ(type_for("application/openmetrics-text;version=1.0.0;q=x,text/plain;q=0.9"),
            kOpenMetrics + "underscores");
}

TEST(Negotiate, EchoesTheEscapingThatLeavesNamesAsTheyAre) {
  EXPECT_EQ(type_for("text/plain;escaping=values"), kText + "values");
  EXPECT_EQ(type_for("text/plain;escaping=dots"), kText + "underscores");
  EXPECT_EQ(type_for("text/plain;escaping=unheard-of"), kText + "underscores");
  EXPECT_EQ(
      type_for("application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,text/plain;q=0.3"),
      kOpenMetrics + "allow-utf-8");
}

// Prometheus 3.0 sends the parameter twice in one of its ranges.
TEST(Negotiate, TakesTheLastOfDuplicateParameters) {
  EXPECT_EQ(type_for("text/plain;escaping=values;escaping=allow-utf-8"), kText + "allow-utf-8");
}

TEST(Negotiate, CompressesWhereThatIsAllowedAndNotLessLiked) {
  for (const char* header :
       {"gzip", "GZIP", "x-gzip", "deflate, gzip;q=0.5", "*", "gzip;q=1.0, identity; q=0.5"}) {
    EXPECT_EQ(negotiate_encoding(header), Encoding::gzip) << header;
  }
  for (const char* header :
       {"", "identity", "zstd, br", "gzip;q=0", "*;q=0", "gzip;q=0, *", "gzip;q=0.5, identity"}) {
    EXPECT_EQ(negotiate_encoding(header), Encoding::identity) << header;
  }
}

struct Case {
  std::string server;
  std::string accept;
  std::string expected;
};

std::vector<Case> read_cases(std::istream& file) {
  std::vector<Case> cases;
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    Case row;
    if (line.starts_with('#') || !std::getline(fields, row.server, '\t')) continue;
    std::getline(fields, row.accept, '\t');
    std::getline(fields, row.expected, '\t');
    cases.push_back(row);
  }
  return cases;
}

/// The file omits the default escaping if the scraper named none, and has one word for the answers to real
/// servers.
std::string completed(std::string expected) {
  if (expected == "om1") return kOpenMetrics;
  if (expected == "proto-delim") return kProtobuf;
  if (expected.find("escaping=") == std::string::npos) expected += "; escaping=underscores";
  return expected;
}

/// Rows for servers that choose a format that gpumeter lacks do not apply to it.
bool concerns_us(const Case& row) {
  return row.expected == "om1" || row.expected == "proto-delim" ||
         ((row.expected.starts_with("text/plain") ||
           row.expected.starts_with("application/openmetrics-text")) &&
          row.expected.find("version=2.0.0") == std::string::npos);
}

TEST(Negotiate, AgreesWithPrometheusOnItsOwnCases) {
  const std::filesystem::path root = places::in_captures("");
  std::ifstream file(root / "../conformance/expfmt-negotiation.tsv");
  if (!file) GTEST_SKIP() << "no expfmt-negotiation.tsv beside " << root;
  int checked = 0;
  for (const Case& row : read_cases(file)) {
    if (!concerns_us(row)) continue;
    ++checked;
    const std::string expected = completed(row.expected);
    EXPECT_EQ(type_for(row.accept).substr(0, expected.size()), expected) << row.server << ": " << row.accept;
  }
  EXPECT_GT(checked, 10);
}

TEST(ScrapeTimeout, IsTheNumberOfSecondsAndNoneIfTheTextIsNoPositiveNumber) {
  using std::chrono::milliseconds;
  EXPECT_EQ(scrape_timeout("10"), milliseconds(10'000));
  EXPECT_EQ(scrape_timeout("9.5"), milliseconds(9'500));
  EXPECT_EQ(scrape_timeout("1e300"), milliseconds(3'600'000));
  for (const char* garbage : {"", "soon", "10s", "1,5", "0x10", "0", "-1", "nan", "--1"}) {
    EXPECT_EQ(scrape_timeout(garbage), Nanoseconds::max()) << garbage;
  }
}

constexpr std::string_view kNewest = "application/openmetrics-text;version=1.0.0";

void expect_negotiated(Negotiations& negotiations, std::string_view accept, std::string_view encoding) {
  const NegotiatedFormat format = negotiate_format(accept);
  const Negotiations::Result result = negotiations.of(accept, encoding);
  EXPECT_EQ(result.format.format, format.format) << accept;
  EXPECT_EQ(result.format.content_type, format.content_type) << accept;
  EXPECT_EQ(result.encoding, negotiate_encoding(encoding)) << encoding;
}

TEST(Negotiations, AreThoseOfBothHeadersWhetherKnownOrNew) {
  Negotiations negotiations;
  for (int round = 0; round < 2; ++round) {
    expect_negotiated(negotiations, "", "");
    expect_negotiated(negotiations, "", "gzip");
    expect_negotiated(negotiations, kNewest, "");
    expect_negotiated(negotiations, kNewest, "gzip;q=0");
    expect_negotiated(negotiations, "text/plain", "gzip");
  }
}

TEST(Negotiations, AHeaderIsNotTheOther) {
  Negotiations negotiations;
  expect_negotiated(negotiations, "gzip", "");
  expect_negotiated(negotiations, "", "gzip");
}

TEST(Negotiations, AreRightAfterMoreHeadersThanAreKept) {
  Negotiations negotiations;
  for (int client = 0; client < 100; ++client) {
    const bool is_text = client % 2 == 0;
    const std::string accept =
        std::string(is_text ? "text/plain" : kNewest) + ";client=" + std::to_string(client % 20);
    expect_negotiated(negotiations, accept, client % 3 == 0 ? "gzip" : "");
  }
}

TEST(Negotiations, ALongHeaderIsReadToItsEnd) {
  Negotiations negotiations;
  const std::string blanks(2000, ' ');
  expect_negotiated(negotiations, blanks + "text/plain", "");
  expect_negotiated(negotiations, blanks + std::string(kNewest), "");
}

TEST(Negotiations, OfSeveralThreadsAreRight) {
  Negotiations negotiations;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&negotiations, i] {
      for (int client = 0; client < 200; ++client) {
        const std::string accept = std::string(kNewest) + ";client=" + std::to_string((client + i) % 20);
        expect_negotiated(negotiations, accept, "gzip");
      }
    });
  }
}

}  // namespace
}  // namespace gpumeter
