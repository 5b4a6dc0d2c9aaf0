#include "exporter/http/negotiation/negotiations.hpp"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace gpumeter {
namespace {

constexpr std::string_view kOpenMetrics = "application/openmetrics-text;version=1.0.0";

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
    expect_negotiated(negotiations, kOpenMetrics, "");
    expect_negotiated(negotiations, kOpenMetrics, "gzip;q=0");
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
        std::string(is_text ? "text/plain" : kOpenMetrics) + ";client=" + std::to_string(client % 20);
    expect_negotiated(negotiations, accept, client % 3 == 0 ? "gzip" : "");
  }
}

TEST(Negotiations, ALongHeaderIsReadToItsEnd) {
  Negotiations negotiations;
  const std::string blanks(2000, ' ');
  expect_negotiated(negotiations, blanks + "text/plain", "");
  expect_negotiated(negotiations, blanks + std::string(kOpenMetrics), "");
}

TEST(Negotiations, OfSeveralThreadsAreRight) {
  Negotiations negotiations;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&negotiations, i] {
      for (int client = 0; client < 200; ++client) {
        const std::string accept = std::string(kOpenMetrics) + ";client=" + std::to_string((client + i) % 20);
        expect_negotiated(negotiations, accept, "gzip");
      }
    });
  }
}

}  // namespace
}  // namespace gpumeter
