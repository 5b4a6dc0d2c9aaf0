#include "collectors/jobs/wire/payload.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace gpumeter::jobs {
namespace {

using Texts = std::vector<std::string>;

Texts lines_of(std::string_view payload) {
  Texts lines;
  for (PayloadLines rest(payload); const auto line = rest.next();) lines.emplace_back(*line);
  return lines;
}

/// The payloads of `bytes` if they arrive in pieces of `at_a_time`.
Texts payloads_of(StreamSplitter& splitter, std::string_view bytes, std::size_t at_a_time) {
  Texts payloads;
  while (!bytes.empty()) {
    const auto room = splitter.room();
    const std::size_t count = std::min({bytes.size(), room.size(), at_a_time});
    if (count == 0) break;
    std::ranges::copy(bytes.substr(0, count), room.begin());
    bytes.remove_prefix(count);
    splitter.received(count);
    while (const auto payload = splitter.next()) payloads.emplace_back(*payload);
  }
  return payloads;
}

std::string frame(std::string_view payload) {
  std::string bytes;
  for (unsigned shift = 0; shift < 32; shift += 8) bytes += static_cast<char>(payload.size() >> shift);
  return bytes.append(payload);
}

TEST(PayloadLines, PassOverEmptyOnes) {
  EXPECT_EQ(lines_of("a:1|g\n"), Texts{"a:1|g"});
  EXPECT_EQ(lines_of("\n\na\n\nb"), (Texts{"a", "b"}));
  EXPECT_EQ(lines_of(""), Texts{});
}

TEST(StreamSplitter, FramesAndLinesAreToldApart) {
  for (const std::size_t at_a_time : {1U, 3U, 7U, 100000U}) {
    StreamSplitter framed;
    EXPECT_EQ(payloads_of(framed, frame("a:1|g\n") + frame("") + frame("b:2|c\nc:3|c\n"), at_a_time),
              (Texts{"a:1|g\n", "", "b:2|c\nc:3|c\n"}));
    StreamSplitter plain;
    EXPECT_EQ(payloads_of(plain, "a:1|g\n\nb:2|c\nc:torn", at_a_time), (Texts{"a:1|g", "b:2|c"}));
  }
}

TEST(StreamSplitter, TheLongestFrameAndLineFit) {
  const std::string longest(kMaxPayload, 'x');
  for (const std::size_t at_a_time : {1000U, 1000000U}) {
    StreamSplitter framed;
    EXPECT_EQ(payloads_of(framed, frame(longest) + frame("a"), at_a_time), (Texts{longest, "a"}));
    StreamSplitter plain;
    EXPECT_EQ(payloads_of(plain, longest + "\na\n", at_a_time), (Texts{longest, "a"}));
    EXPECT_EQ(plain.overlong(), 0U);
  }
}

TEST(StreamSplitter, ALineTooLongIsSkippedAndTheNextIsTaken) {
  for (const std::size_t excess : {1U, 2U, 3U, 200000U}) {
    StreamSplitter splitter;
    EXPECT_EQ(payloads_of(splitter, "a:1|g\n" + std::string(kMaxPayload + excess, 'x') + "\nb\n", 1000),
              (Texts{"a:1|g", "b"}));
    EXPECT_EQ(splitter.overlong(), 1U);
    EXPECT_FALSE(splitter.broken());
  }
}

TEST(StreamSplitter, AFrameTooLongBreaksTheConnection) {
  StreamSplitter splitter;
  EXPECT_EQ(payloads_of(splitter, frame("a") + frame(std::string(kMaxPayload + 1, 'x')) + frame("b"), 1000),
            Texts{"a"});
  EXPECT_TRUE(splitter.broken());
  EXPECT_TRUE(splitter.room().empty());
}

}  // namespace
}  // namespace gpumeter::jobs
