#include "collectors/kernel/repetition.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace gpumeter::kernel {
namespace {

using namespace std::chrono_literals;

/// A log whose lines are given with their time, and what has come back at its end.
class RepetitionTest : public testing::Test {
 protected:
  void line(Nanoseconds time, const std::string& text, bool is_old = false) {
    repetition_.take(*events::parse("NVRM: Xid (PCI:" + text), 1000h + time, gpus_, is_old);
  }
  void sm(Nanoseconds time, int gpc, int tpc, const std::string& gpu = "0000:3d:00") {
    line(time, gpu + "): 13, Graphics SM Warp Exception on (GPC " + std::to_string(gpc) + ", TPC " +
                   std::to_string(tpc) + ", SM 1): Out Of Range Address");
  }
  void fault(Nanoseconds time, const std::string& gpu = "0000:3d:00") {
    line(time, gpu + "): 31, pid=1, name=a, Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS");
  }
  void link(Nanoseconds time, int number, const std::string& registers) {
    line(time, "0000:3d:00): 74, NVLink: fatal error detected on link " + std::to_string(number) + "(" +
                   registers + ")");
  }
  std::string found(Nanoseconds time) {
    std::string text;
    for (const Repetition::Found& each : repetition_.found(1000h + time))
      text += each.pci_address + ": " + each.text + "\n";
    return text;
  }

  std::size_t gpus_ = 8;
  Repetition repetition_;
};

TEST_F(RepetitionTest, AnXid13ThatComesBackOnOneTpc) {
  sm(0s, 1, 3);
  sm(10s, 1, 3);
  sm(24s, 1, 3);
  EXPECT_EQ(found(1min), "") << "one burst";
  sm(1h, 1, 3);
  EXPECT_EQ(found(1h + 15s), "") << "the burst has not ended";
  EXPECT_EQ(found(1h + 16s), "0000:3d:00.0: XID 13 twice within 24 h on GPC 1 TPC 3\n");
  EXPECT_EQ(found(1h + 17s), "") << "once a burst";
}

TEST_F(RepetitionTest, AnXid13ThatMovesIsAProgram) {
  sm(0s, 1, 3);
  sm(1h, 1, 3);
  sm(1h + 1s, 1, 4);
  EXPECT_EQ(found(2h), "") << "another TPC";
  sm(27h, 1, 3);
  EXPECT_EQ(found(28h), "") << "more than a day";
  sm(29h, 1, 3, "0000:5d:00");
  sm(30h, 1, 3);
  EXPECT_EQ(found(31h), "") << "another GPU";
}

TEST_F(RepetitionTest, AnXid13WithoutAPlaceIsNoRepetition) {
  for (const Nanoseconds time : {0s, 3600s, 7200s})
    line(time, "0000:3d:00): 13, Graphics Exception: ESR 0x404490=0x80000001");
  EXPECT_EQ(found(3h), "");
}

TEST_F(RepetitionTest, AnXid31OnOneGpuOfSeveral) {
  fault(0s);
  fault(2min);
  fault(4min);
  EXPECT_EQ(found(1h), "") << "one burst";
  fault(2h);
  EXPECT_EQ(found(3h), "0000:3d:00.0: XID 31 twice within 24 h on this GPU alone\n");
  fault(4h);
  fault(4h + 1s, "0000:5d:00");
  EXPECT_EQ(found(5h), "") << "another GPU has it too";
}

TEST_F(RepetitionTest, AnXid31OfTheOnlyGpuProvesNothing) {
  gpus_ = 1;
  fault(0s);
  fault(2h);
  EXPECT_EQ(found(3h), "");
}

TEST_F(RepetitionTest, AnXid74OfOneLinkByItsBits) {
  link(0s, 14, "0x0, 0x0, 0x10000, 0x0, 0x0, 0x0, 0x0");
  link(1h, 13, "0x0, 0x0, 0x10000, 0x0, 0x0, 0x0, 0x0");
  EXPECT_EQ(found(2h), "") << "two links, once each";
  link(3h, 14, "0x10, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0");
  EXPECT_EQ(found(4h), "0000:3d:00.0: XID 74 twice within 24 h on link 14\n");
  link(5h, 2, "0x1, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0");
  link(6h, 2, "0x1, 0x0, 0x0, 0x0, 0x0, 0x0, 0x0");
  EXPECT_EQ(found(7h), "") << "a bit without a rule";
}

TEST_F(RepetitionTest, OldLinesAreRememberedAndFoundNoMore) {
  fault(0s);
  line(1h, "0000:3d:00): 31, Ch 00000008", true);
  EXPECT_EQ(found(2h), "");
  fault(3h);
  EXPECT_NE(found(4h), "");
}

TEST_F(RepetitionTest, PlacesAreBounded) {
  for (int gpc = 0; gpc < 5000; ++gpc) sm(0s, gpc, 0);
  fault(1s);
  fault(1h);
  EXPECT_EQ(found(2h), "") << "no room";
  fault(30h);
  fault(31h);
  EXPECT_NE(found(32h), "") << "old places make room";
}

}  // namespace
}  // namespace gpumeter::kernel
