#include "collectors/amd/events/smi_text.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace gpumeter::amd {
namespace {

std::vector<std::string> names(std::initializer_list<std::string_view> reads) {
  SmiStream stream;
  std::vector<std::string> found;
  for (const std::string_view bytes : reads)
    stream.add(bytes, [&](std::size_t place) { found.emplace_back(kEvents[place].name); });
  return found;
}

// The lines of kernel 6.12, linux/kfd_ioctl.h, KFD_EVENT_FMT_*.
TEST(SmiStream, EachLineIsAnEvent) {
  EXPECT_EQ(names({"3 1f ring gfx timeout\n4 1f\n1 4d2:python3\n2 8:5\n"}),
            (std::vector<std::string>{"reset", "reset_done", "vm_fault", "thermal_throttle"}));
}

TEST(SmiStream, ALineMayArriveInParts) {
  EXPECT_EQ(names({"3 1", "f\n4", " 1f\n"}), (std::vector<std::string>{"reset", "reset_done"}));
  EXPECT_TRUE(names({"3 1f"}).empty());
}

TEST(SmiStream, OtherEventsAndGarbageAreSkipped) {
  EXPECT_TRUE(names({"c 1\n", "5 1 -2 @3\n", "\n", "x\n", "0 1\n", "100000003 1\n"}).empty());
}

TEST(SmiStream, OfALongLineTheBeginningCounts) {
  EXPECT_EQ(names({"1 " + std::string(5000, 'a'), "\n3 1\n"}),
            (std::vector<std::string>{"vm_fault", "reset"}));
}

}  // namespace
}  // namespace gpumeter::amd
