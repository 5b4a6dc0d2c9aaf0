#include "collectors/sources/page/sample_lines.hpp"

#include <gtest/gtest.h>

#include <string>

namespace gpumeter {
namespace {

/// "line name{label=value}=number" of each sample, then the first bad line.
std::string read(std::string_view page) {
  std::string out;
  SampleLines lines(page);
  while (lines.next()) {
    const SampleLine& sample = lines.sample();
    out += std::to_string(lines.line()) + " " + std::string(sample.name);
    for (const Label& label : sample.labels) out += " " + label.name + "=" + label.value;
    out += " " + std::to_string(static_cast<int>(sample.value)) + "\n";
  }
  return out;
}

TEST(SampleLines, ReadsSamplesAndSkipsComments) {
  EXPECT_EQ(read("# HELP a b\n\na{x=\"1\",y=\"\\\"\\n\"} 2\r\n  b 3 1700000000\n# EOF"),
            "3 a x=1 y=\"\n 2\n4 b 3\n");
}

TEST(SampleLines, SkipsWhatIsNoSample) {
  EXPECT_EQ(read("a 1\nb{x=1} 2\nc\nd{x=\"1\" 2\ne 5"), "1 a 1\n5 e 5\n");
  EXPECT_EQ(read("a one"), "");
}

}  // namespace
}  // namespace gpumeter
