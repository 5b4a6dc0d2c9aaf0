#include "exporter/text/view.hpp"

#include <gtest/gtest.h>

#include <initializer_list>
#include <sstream>
#include <string>

#include "collectors/api/buckets.hpp"
#include "exporter/text/shown.hpp"
#include "tests/fakes/fake_clock.hpp"

namespace gpumeter {
namespace {

constexpr MetricDescriptor kPower{"gpu_power_watts", "Power.", "watts", MetricType::gauge};
constexpr MetricDescriptor kEnergy{"gpu_energy_joules_total", "Energy.", "joules", MetricType::counter};
constexpr MetricDescriptor kStep{"ml_step_seconds", "Step.", "seconds", MetricType::histogram};
constexpr Nanoseconds kNow{};

Labels device(unsigned index) {
  DeviceInfo info;
  info.uuid = "u" + std::to_string(index);
  return {info, index, ""};
}

class TextViewTest : public testing::Test {
 protected:
  std::string text(const Filter& filter = {}) { return view_.render(Format::text, filter).text; }
  std::string openmetrics() { return view_.render(Format::openmetrics).text; }
  static std::string power(const std::string& lines) {
    return "# HELP gpu_power_watts Power.\n# TYPE gpu_power_watts gauge\n" + lines;
  }

  Store store_;
  TextView view_{store_};
};

TEST_F(TextViewTest, IsAnEmptyPageWithoutSeries) {
  const MetricDescriptor* const known[] = {&kPower};
  store_.reserve(known);
  EXPECT_EQ(text(), "");
  EXPECT_EQ(openmetrics(), "# EOF\n");
}

TEST_F(TextViewTest, ShowsOneDeviceInBothFormats) {
  Source source = store_.attach("amd");
  source.set(source.add(kPower, device(0).with({{"sensor", "a\"\\\n\xff"}})), 36.5);
  source.add(kPower, device(0));  // has no value
  source.set(source.add(kEnergy, device(0)), 1234567);
  source.commit(kNow);
  const std::string power_line =
      "gpu_power_watts{gpu=\"0\",uuid=\"u0\",sensor=\"a\\\"\\\\\\n\uFFFD\"} 36.5\n";
  EXPECT_EQ(text(),
            "# HELP gpu_energy_joules_total Energy.\n"
            "# TYPE gpu_energy_joules_total counter\n"
            "gpu_energy_joules_total{gpu=\"0\",uuid=\"u0\"} 1.234567e+06\n" +
                power(power_line));
  EXPECT_EQ(openmetrics(),
            "# TYPE gpu_energy_joules counter\n"
            "# UNIT gpu_energy_joules joules\n"
            "# HELP gpu_energy_joules Energy.\n"
            "gpu_energy_joules_total{gpu=\"0\",uuid=\"u0\"} 1.234567e+06\n"
            "# TYPE gpu_power_watts gauge\n"
            "# UNIT gpu_power_watts watts\n"
            "# HELP gpu_power_watts Power.\n" +
                power_line + "# EOF\n");
}

TEST_F(TextViewTest, MarksThePartsOfAHistogram) {
  Source source = store_.attach();
  const Labels run{{"run", "b"}};
  source.set(source.add(kStep, run.with({{"le", "1.0"}}), SeriesPart::bucket), 1);
  source.set(source.add(kStep, run, SeriesPart::sum), 3.5);
  source.set(source.add(kStep, run, SeriesPart::count), 2);
  source.commit(kNow);
  EXPECT_EQ(text(),
            "# HELP ml_step_seconds Step.\n"
            "# TYPE ml_step_seconds histogram\n"
            "ml_step_seconds_bucket{run=\"b\",le=\"1.0\"} 1\n"
            "ml_step_seconds_sum{run=\"b\"} 3.5\n"
            "ml_step_seconds_count{run=\"b\"} 2\n");
}

TEST_F(TextViewTest, FollowsSeriesThatComeAndGo) {
  Source source = store_.attach("amd");
  const Source::Slot first = source.add(kPower, device(0));
  source.set(first, 1);
  source.commit(kNow);
  EXPECT_EQ(text(), power("gpu_power_watts{gpu=\"0\",uuid=\"u0\"} 1\n"));
  source.set(source.add(kPower, {}), 2);
  source.commit(kNow);
  EXPECT_EQ(text(), power("gpu_power_watts{gpu=\"0\",uuid=\"u0\"} 1\ngpu_power_watts 2\n"));
  source.relabel(first, device(1));
  source.commit(kNow);
  EXPECT_EQ(text(), power("gpu_power_watts{gpu=\"1\",uuid=\"u1\"} 1\ngpu_power_watts 2\n"));
  source.hide();
  EXPECT_EQ(text(), "");
  source.drop(first);
  source.commit(kNow);
  EXPECT_EQ(text(), power("gpu_power_watts 2\n"));
}

TEST_F(TextViewTest, FiltersByCollectorAndKeepsWhatBelongsToNone) {
  Source amd = store_.attach("amd");
  Source nvidia = store_.attach("nvidia");
  Source self = store_.attach();
  amd.set(amd.add(kPower, device(0)), 1);
  nvidia.set(nvidia.add(kPower, device(1)), 2);
  self.set(self.add(kEnergy, {}), 5);
  for (Source* source : {&amd, &nvidia, &self}) source->commit(kNow);
  const std::string of_none =
      "# HELP gpu_energy_joules_total Energy.\n# TYPE gpu_energy_joules_total counter\n"
      "gpu_energy_joules_total 5\n";
  const std::string of_nvidia = power("gpu_power_watts{gpu=\"1\",uuid=\"u1\"} 2\n");
  EXPECT_EQ(text({.collect = {"nvidia"}, .exclude = {}}), of_none + of_nvidia);
  EXPECT_EQ(text({.collect = {}, .exclude = {"amd"}}), of_none + of_nvidia);
  EXPECT_EQ(text({.collect = {}, .exclude = {"amd", "nvidia"}}), of_none);
}

TEST_F(TextViewTest, HasTheGenerationThatItShows) {
  Source source = store_.attach();
  source.commit(kNow);
  EXPECT_EQ(view_.render(Format::text).generation, store_.generation());
}

TEST_F(TextViewTest, HasTheTimeSinceWhichACounterCountsInOpenMetrics) {
  Source source = store_.attach();
  source.set(source.add(kEnergy, Labels{{"run", "a"}}, SeriesPart::value, 1767225600.125), 5);
  source.set(source.add(kEnergy, Labels{{"run", "b"}}), 6);
  source.commit(kNow);
  const std::string begin =
      "# TYPE gpu_energy_joules counter\n# UNIT gpu_energy_joules joules\n# HELP gpu_energy_joules Energy.\n";
  EXPECT_EQ(openmetrics(), begin +
                               "gpu_energy_joules_total{run=\"a\"} 5\n"
                               "gpu_energy_joules_created{run=\"a\"} 1.767225600125e+09\n"
                               "gpu_energy_joules_total{run=\"b\"} 6\n# EOF\n");
  EXPECT_EQ(text(),
            "# HELP gpu_energy_joules_total Energy.\n# TYPE gpu_energy_joules_total counter\n"
            "gpu_energy_joules_total{run=\"a\"} 5\ngpu_energy_joules_total{run=\"b\"} 6\n");
  source.drop(0);
  source.set(source.add(kEnergy, Labels{{"run", "c"}}), 7);
  source.commit(kNow);
  EXPECT_EQ(openmetrics(), begin +
                               "gpu_energy_joules_total{run=\"b\"} 6\n"
                               "gpu_energy_joules_total{run=\"c\"} 7\n# EOF\n")
      << "the slot is used again, its start is not";
  source.clear();
  source.set(source.add(kEnergy, Labels{{"run", "d"}}), 8);
  source.commit(kNow);
  EXPECT_EQ(openmetrics(), begin + "gpu_energy_joules_total{run=\"d\"} 8\n# EOF\n");
}

TEST_F(TextViewTest, ShowsAFamilyThatIsDeclaredAtRunTime) {
  const auto rack = store_.declare({"site_rack_power_watts", "Power of a rack.", "watts", MetricType::gauge});
  ASSERT_TRUE(rack);
  Source source = store_.attach("site");
  source.set(source.add(**rack, Labels{{"rack", "7"}}), 4000);
  source.commit(kNow);
  EXPECT_EQ(text(),
            "# HELP site_rack_power_watts Power of a rack.\n# TYPE site_rack_power_watts gauge\n"
            "site_rack_power_watts{rack=\"7\"} 4000\n");
}

/// The standard page of one GPU whose driver counts errors by code.
class StandardPageTest : public testing::Test {
 protected:
  StandardPageTest() : source_(store_.attach("nvidia")) {
    view_.select({.detail = MetricsDetail::standard});
    attach();
  }
  void attach() {
    source_.clear();
    for (const char* xid : {"31", "79", "other"}) source_.add(kXids, device(0).with({{"xid", xid}}));
    source_.add(kMode, device(0).with({{"state", "on"}}));
    source_.add(kThrottled, device(0));
  }
  std::string page(std::initializer_list<double> values, Format format = Format::text) {
    Source::Slot slot = 0;
    for (const double value : values) source_.set(slot++, value);
    source_.commit(clock_.monotonic());
    clock_.advance(std::chrono::seconds(15));
    std::string lines;
    std::istringstream text(view_.render(format).text);
    for (std::string line; std::getline(text, line);) {
      if (!line.starts_with('#')) lines += line.substr(0, 4) + line.substr(line.find("\"u0\"") + 4) + "\n";
    }
    return lines;
  }

  static constexpr MetricDescriptor kXids{
      "xid_total", "Errors.", "", MetricType::counter, {Detail::Level::nonzero, "xid", "other"}};
  static constexpr MetricDescriptor kMode{"mode", "Mode.", "", MetricType::gauge, kWhileNonzero};
  static constexpr MetricDescriptor kThrottled{"throttled", "Bits.", "", MetricType::gauge, kFullPageOnly};
  Store store_;
  FakeClock clock_;
  TextView view_{store_, clock_};
  Source source_;
};

TEST_F(StandardPageTest, OmitsStatesThatDoNotHoldAndErrorsThatHaveNotHappened) {
  EXPECT_EQ(page({0, 0, 0, 0, 1}), "xid_,xid=\"other\"} 0\n");
  EXPECT_EQ(page({0, 0, 0, 1, 1}), "mode,state=\"on\"} 1\nxid_,xid=\"other\"} 0\n");
  EXPECT_EQ(page({0, 0, 0, 0, 1}), "xid_,xid=\"other\"} 0\n");
}

TEST_F(StandardPageTest, ShowsTheFirstErrorOfACodeAsARise) {
  page({0, 0, 0, 0, 1});
  EXPECT_EQ(page({0, 3, 0, 0, 1}), "xid_,xid=\"79\"} 0\nxid_,xid=\"other\"} 0\n");
  clock_.advance(kZeroFirst);
  EXPECT_EQ(page({0, 3, 0, 0, 1}), "xid_,xid=\"79\"} 3\nxid_,xid=\"other\"} 0\n");
  EXPECT_EQ(page({0, 3, 0, 0, 1}, Format::openmetrics),
            "xid_,xid=\"79\"} 3\nxid_,xid=\"79\"} 1.767225615e+09\nxid_,xid=\"other\"} 0\n");
  EXPECT_NE(view_.render(Format::openmetrics)
                .text.find("xid_created{gpu=\"0\",uuid=\"u0\",xid=\"79\"} 1.767225615e+09\n"),
            std::string::npos);
}

// The daemon cannot know when such a counter began, and no scraper has a sample of it.
TEST_F(StandardPageTest, ShowsACounterAtOnceThatWasNeverZeroOnAPage) {
  EXPECT_EQ(page({0, 7, 0, 0, 1}), "xid_,xid=\"79\"} 7\nxid_,xid=\"other\"} 0\n");
  EXPECT_EQ(page({0, 9, 0, 0, 1}, Format::openmetrics), "xid_,xid=\"79\"} 9\nxid_,xid=\"other\"} 0\n");
  EXPECT_EQ(page({0, 0, 0, 0, 1}, Format::openmetrics),
            "xid_,xid=\"79\"} 0\nxid_,xid=\"79\"} 1.76722563e+09\nxid_,xid=\"other\"} 0\n")
      << "its source starts again from 0";
  EXPECT_EQ(page({0, 1, 0, 0, 1}), "xid_,xid=\"79\"} 1\nxid_,xid=\"other\"} 0\n");
}

// A GPU that falls off the bus reports XID 79 and is attached again later, with new slots.
TEST_F(StandardPageTest, RemembersThatACodeWasZeroBeforeTheDeviceWasLost) {
  page({0, 0, 0, 0, 1});
  source_.hide();
  attach();
  EXPECT_EQ(page({0, 1, 0, 0, 1}), "xid_,xid=\"79\"} 0\nxid_,xid=\"other\"} 0\n");
}

TEST_F(StandardPageTest, FollowsAChangedSelection) {
  page({0, 0, 0, 0, 1});
  view_.select({.detail = MetricsDetail::full});
  EXPECT_EQ(page({0, 0, 0, 0, 1}),
            "mode,state=\"on\"} 0\nthro} 1\nxid_,xid=\"31\"} 0\nxid_,xid=\"79\"} 0\nxid_,xid=\"other\"} 0\n");
  view_.select({.detail = MetricsDetail::full, .include = {}, .exclude = {*SeriesPattern::parse("xid*")}});
  EXPECT_EQ(page({0, 0, 0, 0, 1}), "mode,state=\"on\"} 0\nthro} 1\n");
}

constexpr MetricDescriptor kCodes{"x_total", "X.", "", MetricType::counter, kWhileNonzero};
constexpr MetricDescriptor kWatts{"p", "P.", "", MetricType::gauge};
constexpr MetricDescriptor kSteps{"s", "S.", "", MetricType::histogram};

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

TEST_F(ProtobufTest, IsAMessageOfEachFamilyAfterItsLength) {
  Source source = store_.attach();
  source.set(source.add(kWatts, Labels{{"a", "\xFF"}}), 1);
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
  source.set(source.add(kCodes, {}), 0);
  source.commit(kNow);
  EXPECT_EQ(page(), "");
  clock_.advance(std::chrono::seconds(100));
  source.set(0, 1);
  source.commit(kNow);
  page();
  clock_.advance(kZeroFirst);
  // Timestamp: 1767225600 seconds, 0 nanoseconds.
  const std::string since = bytes({0x1A, 8, 0x08, 0x80, 0xF2, 0xD6, 0xCA, 0x06, 0x10, 0});
  EXPECT_NE(page().find(bytes({0x1A, 19}) + one() + since), std::string::npos)
      << testing::PrintToString(page());
}

TEST_F(ProtobufTest, HasTheStartOfACounterWhoseSourceKnowsIt) {
  Source source = store_.attach();
  source.set(source.add(kCodes, {}, SeriesPart::value, 1767225600), 1);
  source.commit(kNow);
  const std::string since = bytes({0x1A, 8, 0x08, 0x80, 0xF2, 0xD6, 0xCA, 0x06, 0x10, 0});
  EXPECT_TRUE(page().ends_with(bytes({0x1A, 19}) + one() + since)) << testing::PrintToString(page());
}

TEST_F(ProtobufTest, HasTheStartOfADevicesCounterWhichTextLeavesOut) {
  Source source = store_.attach();
  source.set(source.add(kCodes, {}, SeriesPart::value, 1767225600, true), 1);
  source.commit(kNow);
  const std::string since = bytes({0x1A, 8, 0x08, 0x80, 0xF2, 0xD6, 0xCA, 0x06, 0x10, 0});
  EXPECT_TRUE(page().ends_with(bytes({0x1A, 19}) + one() + since)) << testing::PrintToString(page());
  EXPECT_EQ(view_.render(Format::openmetrics).text.find("_created"), std::string::npos);
}

TEST_F(ProtobufTest, MakesOneMetricOfTheSeriesOfAHistogram) {
  Source source = store_.attach();
  const Labels run{{"r", "a"}};
  source.set(source.add(kSteps, run.with({{"le", "1"}}), SeriesPart::bucket), 2);
  source.set(source.add(kSteps, run.with({{"le", "+Inf"}}), SeriesPart::bucket), 3);
  source.set(source.add(kSteps, run, SeriesPart::sum), 1);
  source.set(source.add(kSteps, run, SeriesPart::count), 3);
  source.commit(kNow);
  const std::string bound = bytes({0x1A, 11, 0x08, 2, 0x11, 0, 0, 0, 0, 0, 0, 0xF0, 0x3F});
  const std::string rest = bytes({0x1A, 11, 0x08, 3, 0x11, 0, 0, 0, 0, 0, 0, 0xF0, 0x7F});
  const std::string sum = bytes({0x11, 0, 0, 0, 0, 0, 0, 0xF0, 0x3F});
  EXPECT_TRUE(page().ends_with(bytes({0x0A, 6, 0x0A, 1, 'r', 0x12, 1, 'a', 0x3A, 37}) + bound + rest + sum +
                               bytes({0x08, 3})))
      << testing::PrintToString(page());
}

/// Durations of a run: bounds are 2^(-1/8), 1, 2^(1/8), .., 2; the last but one is not in classic histograms.
class NativeHistogramTest : public ProtobufTest {
 protected:
  NativeHistogramTest() {
    for (int index = -1; index <= 8; ++index) add(exponential_bound(index), index != 7);
    source_.add(kSteps, kRun.with({{"le", "+Inf"}}), SeriesPart::bucket);
    source_.add(kSteps, kRun, SeriesPart::sum);
    source_.add(kSteps, kRun, SeriesPart::count, 1767225600);  // its start
  }
  void add(double bound, bool is_classic) {
    char text[kValueTextMax];
    const std::string le(text, write_value(text, bound));
    source_.add(kSteps, kRun.with({{"le", le}}), is_classic ? SeriesPart::bucket : SeriesPart::fine_bucket);
  }
  /// The metric after its classic buckets, with these cumulative counts.
  std::string after_buckets(std::initializer_list<double> counts, double sum) {
    Source::Slot slot = 0;
    for (const double count : counts) source_.set(slot++, count);
    source_.set(slot++, sum);
    source_.set(slot, *std::prev(counts.end()));
    source_.commit(kNow);
    const std::string all = page();
    return all.substr(all.rfind(bytes({0x11, 0, 0, 0, 0, 0, 0, 0xF0, 0x7F})) + 9);  // the bound +Inf
  }

  const Labels kRun{{"r", "a"}};
  Source source_ = store_.attach();
};

const std::string kSince = bytes({0x7A, 8, 0x08, 0x80, 0xF2, 0xD6, 0xCA, 0x06, 0x10, 0});
const std::string kSum = bytes({0x11, 0, 0, 0, 0, 0, 0, 0xF0, 0x3F});
/// sint32 schema 3, and the zero bucket with what is not above 2^(-1/8).
const std::string kSchemaAndThreshold =
    bytes({0x28, 6, 0x31, 0x86, 0xA4, 0xFB, 0xDC, 0x18, 0x58, 0xED, 0x3F});

TEST_F(NativeHistogramTest, HasExactBucketsInSpans) {
  // In the zero bucket 2, in that up to 1 three, in those up to 2^(4/8) and 2^(5/8) one and four, up to 2
  // five.
  EXPECT_EQ(after_buckets({2, 5, 5, 5, 5, 6, 10, 10, 10, 15, 15}, 1),
            kSum + bytes({0x08, 15}) + kSchemaAndThreshold + bytes({0x38, 2}) +
                bytes({0x62, 4, 0x08, 0, 0x10, 1}) +     // from index 0, of length 1
                bytes({0x62, 4, 0x08, 6, 0x10, 2}) +     // three further, of length 2
                bytes({0x62, 4, 0x08, 4, 0x10, 1}) +     // two further
                bytes({0x6A, 4, 6, 3, 6, 2}) + kSince);  // 3, then -2, +3, +1
}

TEST_F(NativeHistogramTest, IsNativeWithoutAnyValue) {
  EXPECT_EQ(after_buckets({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 1),
            kSum + bytes({0x08, 0}) + kSchemaAndThreshold + bytes({0x38, 0}) + kSince);
}

TEST_F(NativeHistogramTest, IsClassicIfAValueIsAboveTheLastBound) {
  EXPECT_EQ(after_buckets({0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2}, 1), kSum + bytes({0x08, 2}) + kSince);
}

TEST_F(NativeHistogramTest, HasFewerBoundsInText) {
  after_buckets({1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2}, 3);
  const std::string text = view_.render(Format::openmetrics).text;
  EXPECT_EQ(text.find("1.834008086409"), std::string::npos) << text;
  EXPECT_NE(text.find("s_bucket{r=\"a\",le=\"1.6817928305074288\"} 1\ns_bucket{r=\"a\",le=\"2\"} 2\n"
                      "s_bucket{r=\"a\",le=\"+Inf\"} 2\ns_sum{r=\"a\"} 3\ns_count{r=\"a\"} 2\n"
                      "s_created{r=\"a\"} 1.7672256e+09\n"),
            std::string::npos)
      << text;
}

const std::string kTrace = "4bf92f3577b34da6a3ce929d0e0e4736";

/// The label of an Exemplar with the trace above, as a field of 46 bytes.
std::string trace_label() { return bytes({0x0A, 44, 0x0A, 8}) + "trace_id" + bytes({0x12, 32}) + kTrace; }

TEST_F(NativeHistogramTest, HasExemplarsOfItsBuckets) {
  source_.exemplify(1, {1, 1767225600, kTrace, ""});
  const std::string exemplar = trace_label() + bytes({0x11, 0, 0, 0, 0, 0, 0, 0xF0, 0x3F}) +   // value 1
                               bytes({0x1A, 8, 0x08, 0x80, 0xF2, 0xD6, 0xCA, 0x06, 0x10, 0});  // time
  const std::string of_histogram = bytes({0x82, 0x01, 65}) + exemplar;                         // field 16
  const std::string rest = after_buckets({0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, 1);
  EXPECT_TRUE(rest.ends_with(of_histogram + kSince)) << testing::PrintToString(rest);
  const std::string bound = bytes({0x08, 1, 0x11, 0, 0, 0, 0, 0, 0, 0xF0, 0x3F});
  EXPECT_NE(page().find(bytes({0x1A, 78}) + bound + bytes({0x1A, 65}) + exemplar), std::string::npos);
}

TEST_F(NativeHistogramTest, HasTheLastExemplarOfEachLineInOpenMetrics) {
  source_.exemplify(8, {1.75, 1767225600.5, kTrace, "00f067aa0ba902b7"});  // of the bucket that text lacks
  source_.exemplify(9, {2, 1767225600.25, kTrace, ""});
  source_.exemplify(10, {2.5, 1767225601, kTrace, ""});
  after_buckets({0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3}, 3);
  const std::string begin = "s_bucket{r=\"a\",le=\"2\"} 2";
  const std::string end = "\ns_sum{r=\"a\"} 3\n";
  EXPECT_NE(view_.render(Format::openmetrics)
                .text.find(begin + " # {trace_id=\"" + kTrace +
                           "\",span_id=\"00f067aa0ba902b7\"} 1.75 1.7672256005e+09\n"
                           "s_bucket{r=\"a\",le=\"+Inf\"} 3 # {trace_id=\"" +
                           kTrace + "\"} 2.5 1.767225601e+09" + end),
            std::string::npos)
      << view_.render(Format::openmetrics).text;
  EXPECT_NE(view_.render(Format::text).text.find(begin + "\ns_bucket{r=\"a\",le=\"+Inf\"} 3" + end),
            std::string::npos);
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
