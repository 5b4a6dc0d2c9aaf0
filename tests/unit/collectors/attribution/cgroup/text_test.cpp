#include "collectors/attribution/cgroup/text.hpp"

#include <gtest/gtest.h>

namespace gpumeter::cgroup {
namespace {

const std::string kOther = "\xEF\xBF\xBD";  // U+FFFD

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

TEST(LabelText, IsValidUtf8) {
  EXPECT_EQ(label_text("straße-Ω-😀"), "straße-Ω-😀");
  EXPECT_EQ(label_text("a\xFFz"), "a" + kOther + "z");
  EXPECT_EQ(label_text("\xC0\xAF"), kOther + kOther);                   // overlong
  EXPECT_EQ(label_text("\xED\xA0\x80"), kOther + kOther + kOther);      // a surrogate
  EXPECT_EQ(label_text("\xF4\x90\x80\x80").size(), 4 * kOther.size());  // above U+10FFFF
  EXPECT_EQ(label_text("\xE2\x82"), kOther + kOther);                   // cut off
  EXPECT_EQ(label_text("\xF4\x8F\xBF\xBF\xEE\x80\x80"), "\xF4\x8F\xBF\xBF\xEE\x80\x80");
}

TEST(LabelText, HasNoControlCharacters) {
  EXPECT_EQ(label_text(std::string("a\0b\x1B\x7F", 5)), "a" + kOther + "b" + kOther + kOther);
}

TEST(LabelText, ALongOneIsCutAndStaysItself) {
  const std::string longest(kLongestLabel, 'x');
  EXPECT_EQ(label_text(longest), longest);
  const std::string cut = label_text(longest + "1");
  // FNV-1a of the whole text, computed by another program.
  EXPECT_EQ(cut, std::string(119, 'x') + "~85e9351c");
  EXPECT_EQ(cut.size(), kLongestLabel);
  EXPECT_NE(label_text(longest + "2"), cut);
}

TEST(LabelText, IsNotCutAmidstACharacter) {
  const std::string cut = label_text(std::string(118, 'x') + "😀" + std::string(20, 'x'));
  EXPECT_EQ(cut.substr(0, cut.size() - 8), std::string(118, 'x') + "~");
}

}  // namespace
}  // namespace gpumeter::cgroup
