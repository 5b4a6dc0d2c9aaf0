#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "collectors/nvidia/nvml/abi.hpp"
#include "collectors/nvidia/nvml/by_driver.hpp"
#include "collectors/nvidia/nvml/constants.hpp"

namespace gpumeter::nvidia {
namespace {

/// The bytes that a library with entries of this length writes into room for ten.
template <class Entry>
std::vector<std::byte> written(const std::vector<Entry>& entries) {
  std::vector<std::byte> room(10 * sizeof(nvml::WideProcessInfo), kUntouched);
  std::memcpy(room.data(), entries.data(), entries.size() * sizeof(Entry));
  return room;
}

constexpr unsigned kNone = nvml::kNoInstance;

TEST(ProcessStride, ShortEntries) {
  const auto list = written<nvml::ProcessInfo>({{1, 4096, kNone, kNone}, {2, 4096, 1, 0}, {3, 8, 7, 1}});
  for (const std::size_t count : {0U, 1U, 2U, 3U}) EXPECT_EQ(stride_of(list, count), 24U) << count;
}

TEST(ProcessStride, LongEntries) {
  const auto list = written<nvml::WideProcessInfo>({{1, 4096, kNone, kNone, 0},
                                                    {2, 4096, kNone, kNone, nvml::kValueNotAvailable},
                                                    {3, 8, 7, 1, 0},
                                                    {4, 0, 1, 0, 0}});
  for (const std::size_t count : {2U, 3U, 4U}) EXPECT_EQ(stride_of(list, count), 32U) << count;
}

// A single entry has the same content with either length.
TEST(ProcessStride, OneLongEntryIsReadAsAShortOne) {
  EXPECT_EQ(stride_of(written<nvml::WideProcessInfo>({{1, 4096, kNone, kNone, 0}}), 1), 24U);
}

// A pid of 0 is a process of another pid namespace, and no reason to doubt a list with the right end.
TEST(ProcessStride, WhereTheListEndsCountsForMoreThanWhatIsInIt) {
  EXPECT_EQ(stride_of(written<nvml::ProcessInfo>({{0, 1, kNone, kNone}, {0, 1, kNone, kNone}}), 2), 24U);
}

TEST(ProcessStride, WhatMakesSenseNeitherWayIsNoList) {
  EXPECT_EQ(stride_of(std::vector<std::byte>(320, std::byte{0xFF}), 4), 0U);
}

TEST(ProcessStride, OnlyTheBranchesOfTheLongerHeaderMayBeWide) {
  EXPECT_FALSE(may_be_wide("530.41.03"));
  EXPECT_TRUE(may_be_wide("535.54.03"));
  EXPECT_TRUE(may_be_wide("545.23.06"));
  EXPECT_FALSE(may_be_wide("550.54.14"));
  EXPECT_FALSE(may_be_wide(""));
}

}  // namespace
}  // namespace gpumeter::nvidia
