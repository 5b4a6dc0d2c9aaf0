#include "programs/top/layout/printable.hpp"

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

}  // namespace
}  // namespace gpumeter::top
