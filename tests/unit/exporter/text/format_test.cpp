#include "exporter/text/format.hpp"

#include <gtest/gtest.h>
#include <zlib.h>

#include <limits>
#include <random>
#include <string>
#include <utility>

namespace gpumeter {
namespace {

std::string unzipped(std::string bytes, std::size_t room) {
  z_stream stream{};
  EXPECT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);  // gzip only
  std::string out(room, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(stream.total_out);
  inflateEnd(&stream);
  return out;
}

TEST(Gzip, GivesBackWhatWentIn) {
  std::string page;
  for (int i = 0; i < 2000; ++i) page += "gpu_power_watts{gpu=\"" + std::to_string(i % 8) + "\"} 250\n";
  const auto compressed = gzip(page);
  ASSERT_TRUE(compressed);
  EXPECT_LT(compressed->size() * 10, page.size());
  EXPECT_EQ(unzipped(*compressed, page.size() + 1), page);
}

TEST(Gzip, TakesNothingAndWhatCannotBeCompressed) {
  EXPECT_EQ(unzipped(*gzip(""), 1), "");
  std::mt19937 random(1);
  std::string noise(100'000, '\0');
  for (char& c : noise) c = static_cast<char>(random());
  EXPECT_EQ(unzipped(*gzip(noise), noise.size() + 1), noise);
}

TEST(Escaping, EscapesWhatWouldEndALabelValue) {
  EXPECT_EQ(escaped_label("Radeon RX 6900 XT"), "Radeon RX 6900 XT");
  EXPECT_EQ(escaped_label("a\\b\"c\nd"), "a\\\\b\\\"c\\nd");
  EXPECT_EQ(escaped_label(std::string_view("a\0\t\rb", 5)), std::string("a\0\t\rb", 5));
}

TEST(Escaping, KeepsUtf8OfEveryLengthAndReplacesEveryOtherByte) {
  EXPECT_EQ(escaped_label("\u00B5 \u20AC \U0001F600 \U0010FFFF"), "\u00B5 \u20AC \U0001F600 \U0010FFFF");
  EXPECT_EQ(escaped_label("\xFF"), "\uFFFD");
  EXPECT_EQ(escaped_label("a\x80z"), "a\uFFFDz");
  EXPECT_EQ(escaped_label("\xC0\xAF"), "\uFFFD\uFFFD");                      // overlong '/'
  EXPECT_EQ(escaped_label("\xE0\x80\x80"), "\uFFFD\uFFFD\uFFFD");            // overlong NUL
  EXPECT_EQ(escaped_label("\xED\xA0\x80"), "\uFFFD\uFFFD\uFFFD");            // a surrogate
  EXPECT_EQ(escaped_label("\xF4\x90\x80\x80"), "\uFFFD\uFFFD\uFFFD\uFFFD");  // above U+10FFFF
  EXPECT_EQ(escaped_label("\xE2\x82"), "\uFFFD\uFFFD");                      // cut off
  EXPECT_EQ(escaped_label("\xE2\"x"), "\uFFFD\\\"x");  // the next character is checked again
}

using Limits = std::numeric_limits<double>;

std::string text_of(double value) {
  char text[kValueTextMax];
  return {text, write_value(text, value)};
}

// Go's strconv.FormatFloat(value, 'g', -1, 64) gives the same text, and every Prometheus client writes it.
TEST(TextFormat, WritesNumbersAsGoDoes) {
  const std::pair<double, const char*> rows[] = {{0, "0"},
                                                 {-0.0, "-0"},
                                                 {1, "1"},
                                                 {-17, "-17"},
                                                 {0.1, "0.1"},
                                                 {-0.5, "-0.5"},
                                                 {36.5, "36.5"},
                                                 {100000, "100000"},
                                                 {999999, "999999"},
                                                 {-999999, "-999999"},
                                                 {999999.5, "999999.5"},
                                                 {1e6, "1e+06"},
                                                 {-1e6, "-1e+06"},
                                                 {123456789, "1.23456789e+08"},
                                                 {17163091968, "1.7163091968e+10"},
                                                 {0.0001, "0.0001"},
                                                 {0.00001, "1e-05"},
                                                 {1e21, "1e+21"},
                                                 {1e100, "1e+100"},
                                                 {2.0 / 3, "0.6666666666666666"},
                                                 {-2.2250738585072014e-308, "-2.2250738585072014e-308"},
                                                 {-Limits::denorm_min(), "-5e-324"},
                                                 {Limits::max(), "1.7976931348623157e+308"},
                                                 {Limits::quiet_NaN(), "NaN"},
                                                 {-Limits::quiet_NaN(), "NaN"},
                                                 {Limits::infinity(), "+Inf"},
                                                 {-Limits::infinity(), "-Inf"}};
  for (const auto& [value, text] : rows) EXPECT_EQ(text_of(value), text);
}

constexpr MetricDescriptor kPower{"gpu_power_watts", "Power \"draw\".", "watts", MetricType::gauge};
constexpr MetricDescriptor kEnergy{"gpu_energy_joules_total", "Energy.", "joules", MetricType::counter};
constexpr MetricDescriptor kUp{"gpu_up", "Up.", "", MetricType::gauge};

TEST(TextFormat, HeadsAFamilyInText) {
  EXPECT_EQ(family_header(kPower, Format::text),
            "# HELP gpu_power_watts Power \"draw\".\n# TYPE gpu_power_watts gauge\n");
  static constexpr MetricDescriptor kOdd{"odd", "A \"b\"\n\\.", "", MetricType::gauge};
  EXPECT_EQ(family_header(kOdd, Format::text), "# HELP odd A \"b\"\\n\\\\.\n# TYPE odd gauge\n");
  EXPECT_EQ(family_header(kOdd, Format::openmetrics), "# TYPE odd gauge\n# HELP odd A \\\"b\\\"\\n\\\\.\n");
  EXPECT_EQ(family_header(kEnergy, Format::text),
            "# HELP gpu_energy_joules_total Energy.\n# TYPE gpu_energy_joules_total counter\n");
}

TEST(TextFormat, HeadsAFamilyInOpenMetrics) {
  EXPECT_EQ(family_header(kPower, Format::openmetrics),
            "# TYPE gpu_power_watts gauge\n# UNIT gpu_power_watts watts\n"
            "# HELP gpu_power_watts Power \\\"draw\\\".\n");
  EXPECT_EQ(family_header(kEnergy, Format::openmetrics),
            "# TYPE gpu_energy_joules counter\n# UNIT gpu_energy_joules joules\n"
            "# HELP gpu_energy_joules Energy.\n");
  EXPECT_EQ(family_header(kUp, Format::openmetrics), "# TYPE gpu_up gauge\n# HELP gpu_up Up.\n");
}

TEST(TextFormat, PutsLabelsInBracesAndNoneWithoutLabels) {
  const auto prefix = [](SeriesPart part, const Labels& labels) {
    std::string text;
    append_line_prefix(kUp, part, labels, text);
    return text;
  };
  EXPECT_EQ(prefix(SeriesPart::value, {{"gpu", "0"}, {"name", "a\"b"}}), R"(gpu_up{gpu="0",name="a\"b"} )");
  EXPECT_EQ(prefix(SeriesPart::sum, {}), "gpu_up_sum ");
}

}  // namespace
}  // namespace gpumeter
