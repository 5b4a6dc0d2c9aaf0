#include "collectors/jobs/wire/line.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace gpumeter::jobs {
namespace {

constexpr char kTypeWords[] = {'c', 'g', 'm', 'h', 'd', 's'};

std::string shown(PackedValues values) {
  std::string text;
  while (const auto value = values.next()) text += *value ? ' ' + std::to_string(**value) : " refused";
  return text;
}

std::string shown(const MetricLine& line) {
  std::string text = std::string(line.name) + shown(line.values);
  (text += ' ') += kTypeWords[static_cast<int>(line.type)];
  if (line.rate != 1) text += " @" + std::to_string(line.rate);
  if (line.timestamp) text += " T" + std::to_string(*line.timestamp);
  for (Tags tags = line.tags; const auto tag = tags.next();) {
    text += " #" + std::string(tag->key) + '=' + std::string(tag->value);
  }
  return text;
}

/// The result of the parser as text.
std::string parsed(std::string_view text) {
  const Line line = parse_line(text);
  if (const auto* metric = std::get_if<MetricLine>(&line)) return shown(*metric);
  if (const auto* event = std::get_if<EventLine>(&line)) {
    return "event " + std::string(event->title) + " / " + std::string(event->text) + " #" +
           std::string(event->tags.text()) +
           (event->timestamp ? " T" + std::to_string(*event->timestamp) : "");
  }
  if (std::holds_alternative<IgnoredLine>(line)) return "ignored";
  return std::string(to_string(std::get<Refusal>(line)));
}

TEST(DogstatsdLine, OfDatadogsClient) {
  EXPECT_EQ(parsed("ml.steps:1|c"), "ml.steps 1.000000 c");
  EXPECT_EQ(parsed("ml.loss:-2.5e-1|g|#run:a,split:train"), "ml.loss -0.250000 g #run=a #split=train");
  EXPECT_EQ(parsed("g:1|g|T1700000000"), "g 1.000000 g T1700000000");
  EXPECT_EQ(parsed("k:2|c|@0.5|#a:b:c,bare,,x:"), "k 2.000000 c @0.500000 #a=b:c #bare= #x=");
  EXPECT_EQ(parsed("x:1:2:3|d"), "x 1.000000 2.000000 3.000000 d");
  EXPECT_EQ(parsed("x:21::22|ms\r"), "x 21.000000 22.000000 m");
  EXPECT_EQ(parsed("x:1|h|c:ci-0123|e:it-false|card:low|#run:a"), "x 1.000000 h #run=a");
}

TEST(DogstatsdLine, OfPystatsd) {
  EXPECT_EQ(parsed("z:-1|g"), "z -1.000000 g");
  EXPECT_EQ(parsed("z:+4|g"), "z 4.000000 g");
  EXPECT_EQ(parsed("t:320.000000|ms"), "t 320.000000 m");
  EXPECT_EQ(parsed("s:bob|s"), "s refused s");
}

TEST(DogstatsdLine, ValuesThatAreNoFiniteNumberAreRefusedOneByOne) {
  EXPECT_EQ(parsed("x:nan:1:inf:-Infinity:1e18:1.1e18:1e999:0x10:2a: 3:+-1|g"),
            "x refused 1.000000 refused refused 1000000000000000000.000000 refused refused refused refused "
            "refused refused g");
}

TEST(DogstatsdLine, EventsByTheirLengths) {
  EXPECT_EQ(parsed("_e{9,8}:run_start|resnet|x|t:info|#job:a"), "event run_start / resnet|x #job:a");
  EXPECT_EQ(parsed("_e{8,7}:run_stop|success"), "event run_stop / success #");
  EXPECT_EQ(parsed("_e{0,0}:|"), "event  /  #");
  EXPECT_EQ(parsed("_e{1,1}:a|b|d:1700000000|#run:c"), "event a / b #run:c T1700000000");
  EXPECT_EQ(parsed("_e{1,1}:a|b|d:-1"), "event a / b # T-1");
  EXPECT_EQ(parsed("_e{1,1}:a|b|d:99999999999999999999"), "event a / b #");
  EXPECT_EQ(parsed("_e{1,1}:a|b|d:1.5|d:"), "event a / b #");
  for (const char* const wrong :
       {"_e{", "_e{9,8}", "_e{9,8}:run", "_e{9,99}:run_start|resnet", "_e{-1,2}:a|bc",
        "_e{8,7}:run_stop|successx", "_e{18446744073709551615,1}:a|b", "_e{1,18446744073709551615}:a|b",
        "_e{3,1}:a|b"}) {
    EXPECT_EQ(parsed(wrong), "malformed") << wrong;
  }
}

TEST(DogstatsdLine, ServiceChecksAndTheClientsOwnAreIgnored) {
  EXPECT_EQ(parsed("_sc|train.ok|0|#job:a|m:m"), "ignored");
  EXPECT_EQ(parsed("datadog.dogstatsd.client.packets_dropped_writer:0|c|#client:py"), "ignored");
}

TEST(DogstatsdLine, AnythingElseIsMalformed) {
  for (const char* const wrong : {"", "x", "x:", "x:1", "x:1|", "x:1|q", ":1|c", "x y:1|c", "x:|c",
                                  "\xff:1|c", "x:1|cc", "x:1|c|Tomorrow", "_", "|||", ":::MLLOG {}"}) {
    EXPECT_EQ(parsed(wrong), "malformed") << wrong;
  }
  for (const char* const rate : {"0", "-0.5", "1.1", "nan", "", "9e-7"}) {
    EXPECT_EQ(parsed(std::string("x:1|c|@") + rate), "bad_value") << rate;
  }
}

TEST(DogstatsdLine, At32TagsIsTheEnd) {
  std::string line = "x:1|c|#t:1";
  for (int i = 1; i < 32; ++i) line += ",t:1";
  EXPECT_TRUE(std::holds_alternative<MetricLine>(parse_line(line)));
  EXPECT_EQ(parsed(line + ",t:1"), "malformed");
}

TEST(DogstatsdLine, TheFirstTagOfAKeyCounts) {
  const Tags tags("run:call,run:constant,empty:,empty:no");
  EXPECT_EQ(tags.find("run"), "call");
  EXPECT_EQ(tags.find("empty"), "no");
  EXPECT_EQ(tags.find("other"), "");
}

TEST(DogstatsdLine, NamesATraceInTheFormOfW3C) {
  const std::string trace = "4bf92f3577b34da6a3ce929d0e0e4736";
  const std::string span = "00f067aa0ba902b7";
  const auto read = [](const std::string& tags) {
    const Trace found = trace_of(Tags(tags));
    return std::pair(std::string(found.trace_id), std::string(found.span_id));
  };
  using Pair = std::pair<std::string, std::string>;
  EXPECT_EQ(read("run:a,trace_id:" + trace + ",span_id:" + span), Pair(trace, span));
  EXPECT_EQ(read("trace_id:" + trace), Pair(trace, ""));
  EXPECT_EQ(read("trace_id:" + trace + ",span_id:7"), Pair(trace, ""));
  EXPECT_EQ(read("span_id:" + span), Pair("", "")) << "of no trace";
  for (const char* const other :
       {"4BF92F3577B34DA6A3CE929D0E0E4736", "5611920385980137472", "", "00000000000000000000000000000000",
        "4bf92f3577b34da6a3ce929d0e0e473\"", "4bf92f3577b34da6a3ce929d0e0e47360"})
    EXPECT_EQ(read("trace_id:" + std::string(other) + ",span_id:" + span), Pair("", "")) << other;
}

TEST(DogStatsdLine, StandsForAsManyLinesAsItHasValues) {
  EXPECT_EQ(lines_in("ml.steps:1|c|#run:a,b:c"), 1U);
  EXPECT_EQ(lines_in("ml.step.seconds:1:2:3|d|#run:a"), 3U);
  EXPECT_EQ(lines_in("ml.step.seconds::::|d"), 4U);
  EXPECT_EQ(lines_in("_e{9,1}:run_start|a:b:c"), 1U);
  EXPECT_EQ(lines_in("_sc|a:b:c|0"), 1U);
  EXPECT_EQ(lines_in("neither:one:nor:the:other"), 4U);
  EXPECT_EQ(lines_in("x"), 1U);
}

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

using namespace std::string_literals;

TEST(LabelText, PrintableUtf8StaysAsItIs) {
  EXPECT_EQ(label_text("resnet50 / \"a\\b\" ä € 🚀"), "resnet50 / \"a\\b\" ä € 🚀");
  EXPECT_EQ(label_text(""), "");
}

TEST(LabelText, WhatIsNoCharacterOrDoesNotPrintIsReplaced) {
  EXPECT_EQ(label_text("a\nb\0c\x7f"s), "a�b�c�");
  EXPECT_EQ(label_text("\xff|\xc3|\xe2\x82"), "�|�|��");
  EXPECT_EQ(label_text("\xc0\xaf"), "��");            // overlong
  EXPECT_EQ(label_text("\xe0\x80\xaf"), "���");       // overlong
  EXPECT_EQ(label_text("\xed\xa0\x80"), "���");       // a surrogate
  EXPECT_EQ(label_text("\xf4\x90\x80\x80"), "����");  // over U+10FFFF
  EXPECT_EQ(label_text("a\u202eb\u2066c\u200bd\u0085"), "a�b�c�d�");
}

TEST(LabelText, IsCutBetweenTwoCharacters) {
  EXPECT_EQ(label_text(std::string(70, 'x')), std::string(64, 'x'));
  EXPECT_EQ(label_text(std::string(63, 'x') + "ä"), std::string(63, 'x'));
  EXPECT_EQ(label_text(std::string(62, 'x') + "ä"), std::string(62, 'x') + "ä");
  EXPECT_EQ(label_text(std::string(63, 'x') + "\xff"), std::string(63, 'x'));
}

TEST(RunNameText, EndsWithAHashWhereItIsLonger) {
  EXPECT_EQ(run_name_text(std::string(64, 'x')), std::string(64, 'x'));
  EXPECT_EQ(run_name_text(std::string(70, 'x')), std::string(55, 'x') + "~77f3c97d");
  std::string name;
  for (int i = 0; i < 40; ++i) name += "ä";
  EXPECT_EQ(run_name_text(name), name.substr(0, 54) + "~15772185");  // whole characters
  EXPECT_EQ(run_name_text(run_name_text(name)), run_name_text(name));
  EXPECT_EQ(run_name_text(std::string(63, 'x') + "\x01").size(), 64U);
  EXPECT_NE(run_name_text(std::string(63, 'x') + "\x01"), run_name_text(std::string(63, 'x') + "\x02"));
}

}  // namespace

}  // namespace gpumeter::jobs
