#include "programs/top/layout.hpp"

#include <gtest/gtest.h>

namespace gpumeter::top {
namespace {

TEST(PrintableTest, ReplacesWhatControlsATerminal) {
  EXPECT_EQ(printable("a\x1b[31mred\x07\r\n\tb\x7f", Charset::ascii), "a?[31mred????b?");
  EXPECT_EQ(printable("a\x1b[2Jb", Charset::utf8), "a\uFFFD[2Jb");
  EXPECT_EQ(printable("\u009b31m", Charset::utf8), "\uFFFD31m") << "C1's CSI";
  EXPECT_EQ(printable("a\u202Eb\u200Fc\u2066", Charset::utf8), "a\uFFFDb\uFFFDc\uFFFD") << "directions";
  EXPECT_EQ(printable("e\u0301", Charset::utf8), "e\uFFFD") << "a combining character has no column";
  EXPECT_EQ(printable("a\xff\xc3", Charset::utf8), "a\uFFFD\uFFFD") << "bytes that are not UTF-8";
}

TEST(PrintableTest, KeepsText) {
  EXPECT_EQ(printable("llama-70b é 模型", Charset::utf8), "llama-70b é 模型");
  EXPECT_EQ(printable("llama-70b é", Charset::ascii), "llama-70b ?");
}

TEST(PrintableTest, WidthCountsColumns) {
  EXPECT_EQ(width_of("llama"), 5);
  EXPECT_EQ(width_of("é…"), 2);
  EXPECT_EQ(width_of("模型"), 4);
}

TEST(PrintableTest, CutsBetweenCharacters) {
  EXPECT_EQ(cut("llama-70b", 9, Charset::ascii), "llama-70b");
  EXPECT_EQ(cut("llama-70b", 6, Charset::ascii), "llama~");
  EXPECT_EQ(cut("llama-70b", 6, Charset::utf8), "llama…");
  EXPECT_EQ(cut("模型模型", 6, Charset::utf8), "模型…");
  EXPECT_EQ(cut("abc", 0, Charset::utf8), "");
}

TEST(PrintableTest, PadsToTheWidth) {
  EXPECT_EQ(padded("ab", 4, Charset::ascii), "ab  ");
  EXPECT_EQ(padded("ab", 4, Charset::ascii, true), "  ab");
  EXPECT_EQ(padded("模型模型", 6, Charset::utf8), "模型… ");
}

TEST(FormatTest, AbsentIsNotZero) {
  EXPECT_EQ(number_text({}), "-");
  EXPECT_EQ(pair_text({}, {}), "-");
  EXPECT_EQ(pair_text({}, 450), "-/450");
  EXPECT_EQ(percent_text({}), "-");
  EXPECT_EQ(short_text({}), "-");
  EXPECT_EQ(age_text({}), "-");
}

TEST(FormatTest, Numbers) {
  EXPECT_EQ(number_text(412.4), "412");
  EXPECT_EQ(number_text(-0.2), "0");
  EXPECT_EQ(pair_text(38 * kGiB, 80 * kGiB, 1, kGiB), "38.0/80.0");
  EXPECT_EQ(percent_text(0.874), "87%");
  EXPECT_EQ(short_text(4.018), "4.02");
  EXPECT_EQ(short_text(12.34), "12.3");
  EXPECT_EQ(short_text(250.4), "250");
  EXPECT_EQ(short_text(0.0123), "0.0123");
  EXPECT_EQ(short_text(0), "0.0000");
  EXPECT_EQ(short_text(3e8), "3.00e+08");
}

TEST(FormatTest, Ages) {
  EXPECT_EQ(age_text(45.2), "45s");
  EXPECT_EQ(age_text(192), "3m12s");
  EXPECT_EQ(age_text(5 * 3600 + 185), "5h03m");
  EXPECT_EQ(age_text(12.2 * 86400), "12d4h");
}

TEST(FormatTest, Ranges) {
  EXPECT_EQ(ranges_text({}), "-");
  EXPECT_EQ(ranges_text({"3"}), "3");
  EXPECT_EQ(ranges_text({"0", "1", "2", "5", "6", "9"}), "0-2,5,6,9");
}

TEST(FormatTest, BarsHaveTheirWidth) {
  EXPECT_EQ(bar(0.5, 10, Charset::ascii), "|||||     ");
  EXPECT_EQ(bar(7, 4, Charset::ascii), "||||");
  EXPECT_EQ(bar(0.55, 5, Charset::utf8), "██▊  ");
  EXPECT_EQ(bar(0, 3, Charset::utf8), "   ");
}

TEST(FormatTest, PlotsHaveTheirSize) {
  const std::vector<Number> values = {{}, 0, 0.25, 1, 7};
  EXPECT_EQ(plot(values, 1, "100%", 11, 2, Charset::ascii),
            (std::vector<std::string>{" 100%    ||", "       .:||"}));
  EXPECT_EQ(plot(values, 1, "1", 11, 1, Charset::utf8), std::vector<std::string>{"    1  ▁▂██"});
  EXPECT_EQ(plot(values, 1, "1", 8, 1, Charset::ascii), std::vector<std::string>{"    1 .|"}) << "means";
  EXPECT_EQ(plot({}, 0, "1", 8, 1, Charset::ascii), std::vector<std::string>{"    1   "});
}

std::string text_of(const Lines& lines) {
  std::string text;
  for (const Line& line : lines) text += line.text() + "\n";
  return text;
}

const Table kTable{
    {{"GPU", 3, 5, 100, true}, {"", 4, 10, 10}, {"HELD BY", 7, 20, 50}},
    {{{{"0"}, {"", Style::good, 0.5}, {"train.service (alice)"}}, false}, {{{"11"}, {}, {"-"}}, false}}};

TEST(TopTableTest, GrowsByPriority) {
  EXPECT_EQ(text_of(laid_out(kTable, 40, Charset::ascii)),
            "GPU            HELD BY             \n"
            "  0 |||||      train.service (alic~\n"
            " 11            -                   \n");
  EXPECT_EQ(text_of(laid_out(kTable, 27, Charset::ascii)),
            "GPU      HELD BY           \n"
            "  0 ||   train.service (al~\n"
            " 11      -                 \n");
}

TEST(TopTableTest, NotesAreBelowTheirRows) {
  Table table = kTable;
  table.rows[0].note = {"it is hot and will not last", Style::bad};
  EXPECT_EQ(text_of(laid_out(table, 14, Charset::ascii)),
            "GPU HELD BY   \n"
            "  0 train.ser~\n"
            "    it is hot~\n"
            " 11 -         \n");
}

TEST(LinesTest, StandBesideEachOther) {
  const Lines left = {Line("one"), Line("longer")};
  EXPECT_EQ(text_of(beside(left, {Line("1"), Line("2"), Line("3")}, 5, Charset::ascii)),
            "one  1\nlong~2\n     3\n");
  EXPECT_EQ(text_of(beside(left, {Line("1")}, 5, Charset::ascii)), "one  1\nlonger\n");
}

TEST(LinesTest, CountWhatDoesNotFit) {
  const Lines lines = {Line("a"), Line("b"), Line("c")};
  EXPECT_EQ(text_of(fitted(lines, 3)), "a\nb\nc\n");
  EXPECT_EQ(text_of(fitted(lines, 2)), "a\nand 2 more\n");
  EXPECT_EQ(text_of(fitted(lines, 0)), "");
}

TEST(TopTableTest, DropsTheLeastImportantColumn) {
  EXPECT_EQ(text_of(laid_out(kTable, 14, Charset::ascii)),
            "GPU HELD BY   \n"
            "  0 train.ser~\n"
            " 11 -         \n");
}

}  // namespace
}  // namespace gpumeter::top
