#include "programs/top/layout/table.hpp"

#include <gtest/gtest.h>

namespace gpumeter::top {
namespace {

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

TEST(TopTableTest, DropsTheLeastImportantColumn) {
  EXPECT_EQ(text_of(laid_out(kTable, 14, Charset::ascii)),
            "GPU HELD BY   \n"
            "  0 train.ser~\n"
            " 11 -         \n");
}

}  // namespace
}  // namespace gpumeter::top
