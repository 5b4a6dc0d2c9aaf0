#include "base/descriptor.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <utility>

#include "base/text.hpp"

namespace gpumeter {
namespace {

bool is_open(int number) { return fcntl(number, F_GETFD) != -1; }

TEST(Descriptor, ClosesAtItsEndAndWhenReplaced) {
  int first = -1;
  int second = -1;
  {
    Descriptor file(open("/dev/null", O_RDONLY | O_CLOEXEC));
    first = file.number();
    EXPECT_TRUE(is_open(first));
    file = Descriptor(open("/dev/null", O_RDONLY | O_CLOEXEC));
    second = file.number();
    EXPECT_FALSE(is_open(first));
  }
  EXPECT_FALSE(is_open(second));
}

TEST(Descriptor, AMovedOrReleasedOneOwnsNothing) {
  Descriptor from(open("/dev/null", O_RDONLY | O_CLOEXEC));
  Descriptor to(std::move(from));
  EXPECT_FALSE(from);  // NOLINT(bugprone-use-after-move): what is tested
  ASSERT_TRUE(to);
  const int number = to.release();
  EXPECT_FALSE(to);
  EXPECT_TRUE(is_open(number));
  close(number);
}

TEST(EnumNames, FindBothWays) {
  enum class Fruit { apple, pear, plum };
  constexpr EnumNames<Fruit, 2> kNames = {{{Fruit::pear, "pear"}, {Fruit::apple, "apple"}}};
  static_assert(kNames.of(Fruit::apple) == "apple");
  static_assert(kNames.find("pear") == Fruit::pear);
  EXPECT_EQ(kNames.of(Fruit::plum), "");
  EXPECT_EQ(kNames.find("plum"), std::nullopt);
}

}  // namespace
}  // namespace gpumeter
