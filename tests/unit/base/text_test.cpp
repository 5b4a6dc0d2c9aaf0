#include "base/text.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace gpumeter {
namespace {

std::vector<char32_t> codes_of(std::string_view text) {
  std::vector<char32_t> codes;
  while (!text.empty()) codes.push_back(take_character(text).code);
  return codes;
}

TEST(Text, CharactersAreUtf8) {
  EXPECT_EQ(codes_of("a\n\u00e9\u20ac\U0001F600\U0010FFFF"),
            (std::vector<char32_t>{'a', '\n', 0xe9, 0x20ac, 0x1F600, 0x10FFFF}));
  EXPECT_EQ(codes_of(std::string_view("\0", 1)), (std::vector<char32_t>{0}));
}

TEST(Text, EachByteThatIsNoCharacterIsTakenAlone) {
  constexpr char32_t kNone = Character::kNone;
  const std::vector<char32_t> none2 = {kNone, kNone};
  EXPECT_EQ(codes_of("\x80"), (std::vector<char32_t>{kNone}));
  EXPECT_EQ(codes_of("\xC1\x81"), none2) << "an overlong form";
  EXPECT_EQ(codes_of("\xE2\x82"), none2) << "cut off";
  EXPECT_EQ(codes_of("\xC3z"), (std::vector<char32_t>{kNone, 'z'})) << "no continuation";
  EXPECT_EQ(codes_of("\xE0\x9F\xBF"), (std::vector<char32_t>{kNone, kNone, kNone})) << "overlong";
  EXPECT_EQ(codes_of("\xED\xA0\x80"), (std::vector<char32_t>{kNone, kNone, kNone})) << "a surrogate";
  EXPECT_EQ(codes_of("\xF4\x90\x80\x80"), (std::vector<char32_t>{kNone, kNone, kNone, kNone}))
      << "beyond U+10FFFF";
  EXPECT_EQ(codes_of("\xFF\xFE"), none2);
}

TEST(Text, ACutTakesNoPartOfACharacter) {
  EXPECT_EQ(first_bytes("abc", 3), "abc");
  EXPECT_EQ(first_bytes("abcd", 3), "abc");
  EXPECT_EQ(first_bytes("ab\u20ac", 4), "ab");
  EXPECT_EQ(first_bytes("ab\u20ac", 5), "ab\u20ac");
  EXPECT_EQ(first_bytes("\x80\x80", 1), "");
}

TEST(Text, PartsAreTakenOffTheFront) {
  std::string_view text = "a,,b";
  EXPECT_EQ(take_until(text, ','), "a");
  EXPECT_EQ(take_until(text, ','), "");
  EXPECT_EQ(take_until(text, ','), "b");
  EXPECT_EQ(text, "");
  EXPECT_EQ(take_until(text, ','), "");
}

TEST(Text, TrimmedHasNoBlanksAtItsEnds) {
  EXPECT_EQ(trimmed(" \t a b\r\n"), "a b");
  EXPECT_EQ(trimmed("a"), "a");
  EXPECT_EQ(trimmed(" \n"), "");
  EXPECT_EQ(trimmed(""), "");
}

TEST(Text, ANumberIsTheWholeText) {
  EXPECT_EQ(parse_number<int>("-12"), -12);
  EXPECT_EQ(parse_number<double>("1.5e3"), 1500.0);
  EXPECT_EQ(parse_number<unsigned>("ff", 16), 255U);
  EXPECT_EQ(parse_number<std::uint8_t>("255"), std::uint8_t{255});
  for (const char* bad : {"", " 1", "1 ", "+1", "1x", "0x1", "2147483648"}) {
    EXPECT_EQ(parse_number<int>(bad), std::nullopt) << bad;
  }
  EXPECT_EQ(parse_number<unsigned>("-1"), std::nullopt);
}

TEST(Text, ANumberIsTakenOffTheFront) {
  std::string_view text = "580.95";
  EXPECT_EQ(take_number<unsigned>(text), 580U);
  EXPECT_EQ(text, ".95");
  EXPECT_EQ(take_number<unsigned>(text), std::nullopt);
  EXPECT_EQ(text, ".95") << "nothing is taken without a number";
}

TEST(Unescaped, UndoesWhatSystemdWrote) {
  EXPECT_EQ(unescaped(R"(machine-qemu\x2d2\x2dbig.scope)"), "machine-qemu-2-big.scope");
  EXPECT_EQ(unescaped(R"(\xc3\xA4)"), "ä");
  EXPECT_EQ(unescaped(R"(a\x5cx2d)"), R"(a\x2d)");  // only once
}

TEST(Unescaped, LeavesWhatIsNoEscape) {
  for (const char* const text : {"", "\\", "\\x", "\\x2", "\\xg0", "\\x-1", "\\x 1", "\\X2d", "plain"}) {
    EXPECT_EQ(unescaped(text), text);
  }
}

}  // namespace
}  // namespace gpumeter
