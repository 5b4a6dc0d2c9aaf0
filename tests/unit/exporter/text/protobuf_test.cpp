#include "exporter/text/protobuf.hpp"

#include <gtest/gtest.h>

#include "exporter/text/view.hpp"
#include "tests/fakes/fake_clock.hpp"

namespace gpumeter {
namespace {

constexpr MetricDescriptor kXids{"x_total", "X.", "", MetricType::counter, kWhileNonzero};
constexpr MetricDescriptor kPower{"p", "P.", "", MetricType::gauge};
constexpr MetricDescriptor kStep{"s", "S.", "", MetricType::histogram};
constexpr Nanoseconds kNow{};

std::string bytes(std::initializer_list<int> values) {
  std::string text;
  for (const int value : values) text += static_cast<char>(value);
  return text;
}
std::string one() { return bytes({0x09, 0, 0, 0, 0, 0, 0, 0xF0, 0x3F}); }  // field 1, the double 1.0

class ProtobufTest : public testing::Test {
 protected:
  std::string page() { return view_.render(Format::protobuf).text; }

  Store store_;
  FakeClock clock_;
  TextView view_{store_, clock_};
};

TEST(Protobuf, EncodesNumbersInGroupsOfSevenBits) {
  std::string text;
  for (const std::uint64_t value : {0ULL, 127ULL, 300ULL}) protobuf::append_varint(value, text);
  EXPECT_EQ(text, bytes({0, 0x7F, 0xAC, 0x02}));
}

TEST_F(ProtobufTest, IsAMessageOfEachFamilyAfterItsLength) {
  Source source = store_.attach();
  source.set(source.add(kPower, Labels{{"a", "\xFF"}}), 1);
  source.commit(kNow);
  const std::string labels = bytes({0x0A, 8}) + bytes({0x0A, 1, 'a'}) + bytes({0x12, 3}) + "\xEF\xBF\xBD";
  const std::string metric = labels + bytes({0x12, 9}) + one();
  const std::string family = bytes({0x0A, 1, 'p', 0x12, 2, 'P', '.', 0x18, 1, 0x22, 21}) + metric;
  EXPECT_EQ(page(), bytes({static_cast<int>(family.size())}) + family);
  source.miss(0, ReadStatus::failed);
  source.commit(kNow);
  EXPECT_EQ(page(), "");
}

TEST_F(ProtobufTest, HasTheStartOfACounterThatAppearsLate) {
  view_.select({.detail = MetricsDetail::standard});
  Source source = store_.attach();
  source.set(source.add(kXids, {}), 0);
  source.commit(kNow);
  EXPECT_EQ(page(), "");
  clock_.advance(std::chrono::seconds(100));
  source.set(0, 1);
  source.commit(kNow);
  page();
  clock_.advance(LateSeries::kZeroFirst);
  // Timestamp: 1767225600 seconds, 0 nanoseconds.
  const std::string since = bytes({0x1A, 8, 0x08, 0x80, 0xF2, 0xD6, 0xCA, 0x06, 0x10, 0});
  EXPECT_NE(page().find(bytes({0x1A, 19}) + one() + since), std::string::npos)
      << testing::PrintToString(page());
}

TEST_F(ProtobufTest, HasTheStartOfACounterWhoseSourceKnowsIt) {
  Source source = store_.attach();
  source.set(source.add(kXids, {}, SeriesPart::value, 1767225600), 1);
  source.commit(kNow);
  const std::string since = bytes({0x1A, 8, 0x08, 0x80, 0xF2, 0xD6, 0xCA, 0x06, 0x10, 0});
  EXPECT_TRUE(page().ends_with(bytes({0x1A, 19}) + one() + since)) << testing::PrintToString(page());
}

TEST_F(ProtobufTest, MakesOneMetricOfTheSeriesOfAHistogram) {
  Source source = store_.attach();
  const Labels run{{"r", "a"}};
  source.set(source.add(kStep, run.with({{"le", "1"}}), SeriesPart::bucket), 2);
  source.set(source.add(kStep, run.with({{"le", "+Inf"}}), SeriesPart::bucket), 3);
  source.set(source.add(kStep, run, SeriesPart::sum), 1);
  source.set(source.add(kStep, run, SeriesPart::count), 3);
  source.commit(kNow);
  const std::string bound = bytes({0x1A, 11, 0x08, 2, 0x11, 0, 0, 0, 0, 0, 0, 0xF0, 0x3F});
  const std::string rest = bytes({0x1A, 11, 0x08, 3, 0x11, 0, 0, 0, 0, 0, 0, 0xF0, 0x7F});
  const std::string sum = bytes({0x11, 0, 0, 0, 0, 0, 0, 0xF0, 0x3F});
  EXPECT_TRUE(page().ends_with(bytes({0x0A, 6, 0x0A, 1, 'r', 0x12, 1, 'a', 0x3A, 37}) + bound + rest + sum +
                               bytes({0x08, 3})))
      << testing::PrintToString(page());
}

TEST_F(ProtobufTest, MakesOneMetricOfTheSeriesOfASummary) {
  Source source = store_.attach();
  static constexpr MetricDescriptor kWait{"w", "W.", "", MetricType::summary};
  source.set(source.add(kWait, Labels{{"r", "a"}, {"quantile", "0.5"}}), 1);
  source.set(source.add(kWait, Labels{{"r", "a"}}, SeriesPart::sum), 1);
  source.set(source.add(kWait, Labels{{"r", "a"}}, SeriesPart::count), 3);
  source.commit(kNow);
  const std::string double_one = bytes({0x11, 0, 0, 0, 0, 0, 0, 0xF0, 0x3F});
  const std::string half = bytes({0x1A, 18, 0x09, 0, 0, 0, 0, 0, 0, 0xE0, 0x3F}) + double_one;
  EXPECT_TRUE(page().ends_with(bytes({0x0A, 6, 0x0A, 1, 'r', 0x12, 1, 'a', 0x22, 31}) + half + double_one +
                               bytes({0x08, 3})))
      << testing::PrintToString(page());
}

TEST_F(ProtobufTest, CallsAnUntypedFamilySo) {
  Source source = store_.attach();
  static constexpr MetricDescriptor kAny{"u", "U.", "", MetricType::untyped};
  source.set(source.add(kAny, {}), 1);
  source.commit(kNow);
  EXPECT_TRUE(page().ends_with(bytes({0x18, 3, 0x22, 11, 0x2A, 9}) + one()))
      << testing::PrintToString(page());
}

}  // namespace
}  // namespace gpumeter
