#include "collectors/jobs/wire/label_text.hpp"

#include <gtest/gtest.h>

namespace gpumeter::jobs {
namespace {

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
