#include "collectors/sources/screens.hpp"

#include <gtest/gtest.h>

#include "tests/fakes/tree.hpp"

namespace gpumeter {
namespace {

TEST(Screens, OneThatIsOnIsEnough) {
  const Tree tree({{"drm/card1/card1-DP-1/dpms", "Off\n"},
                   {"drm/card1/card1-HDMI-A-1/dpms", "On\n"},
                   {"drm/renderD129/dev", "226:129\n"}});
  const Screens screens(tree.path());
  EXPECT_TRUE(screens.any_on());
  tree.write("drm/card1/card1-HDMI-A-1/dpms", "Off\n");
  EXPECT_FALSE(screens.any_on());
}

TEST(Screens, ACardWithoutConnectorsHasNone) {
  EXPECT_FALSE(Screens().any_on());
  EXPECT_FALSE(Screens(Tree({{"drm/card0/dev", "226:0\n"}}).path()).any_on());
}

}  // namespace
}  // namespace gpumeter
