#include "exporter/store/frame.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace gpumeter {
namespace {

TEST(Frame, StartsWithNothingRead) {
  const Frame frame(3);
  ASSERT_EQ(frame.size(), 3U);
  for (const ReadStatus status : frame.statuses()) EXPECT_EQ(status, ReadStatus::unsupported);
}

TEST(Frame, HoldsWhatTheSinkIsGiven) {
  Frame frame(2);
  SampleSink sink = frame.sink();
  sink.set(0, 42.5);
  sink.miss(1, ReadStatus::timeout);
  EXPECT_EQ(frame.values()[0], 42.5);
  EXPECT_EQ(frame.statuses()[0], ReadStatus::ok);
  EXPECT_EQ(frame.statuses()[1], ReadStatus::timeout);
}

TEST(Frame, LiesInOnePiece) {
  const Frame frame(5);
  const auto* values_end = reinterpret_cast<const std::byte*>(frame.values().data() + 5);
  EXPECT_EQ(values_end, reinterpret_cast<const std::byte*>(frame.statuses().data()));
}

TEST(Frame, IsCopiedAsAWhole) {
  Frame from(2);
  from.sink().set(1, -1);
  Frame to(2);
  to.sink().set(0, 7);
  to.copy_from(from);
  EXPECT_EQ(to.statuses()[0], ReadStatus::unsupported);
  EXPECT_EQ(to.statuses()[1], ReadStatus::ok);
  EXPECT_EQ(to.values()[1], -1);
}

TEST(Frame, StaysAsItIsWhenTheOtherHasAnotherSize) {
  Frame to(1);
  to.sink().set(0, 7);
  to.copy_from(Frame(2));
  EXPECT_EQ(to.values()[0], 7);
  EXPECT_EQ(to.statuses()[0], ReadStatus::ok);
}

TEST(Frame, KeepsItsPlaceWhenMoved) {
  Frame frame(1);
  frame.sink().set(0, 7);
  const Frame moved = std::move(frame);
  EXPECT_EQ(moved.values()[0], 7);
  EXPECT_EQ(moved.statuses()[0], ReadStatus::ok);
}

TEST(Frame, MayHaveNoSlot) { EXPECT_EQ(Frame(0).size(), 0U); }

}  // namespace
}  // namespace gpumeter
