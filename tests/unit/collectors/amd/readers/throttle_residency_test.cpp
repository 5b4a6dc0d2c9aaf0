#include "collectors/amd/readers/throttle_residency.hpp"

#include <gtest/gtest.h>

#include "tests/fakes/amd_card.hpp"

namespace gpumeter::amd {
namespace {

constexpr std::size_t kPpt = blob_field("ppt_residency_acc");
constexpr std::size_t kSocket = blob_field("socket_thm_residency_acc");
constexpr std::size_t kHbm = blob_field("hbm_thm_residency_acc");
constexpr std::uint64_t kSecond = 100'000'000;  // of 10 ns

struct Counts {
  std::uint64_t time, cycles, ppt = 0, socket = 0, hbm = 0;
};

GpuMetricsBlob blob_of(const Counts& counts) {
  const std::string bytes = FakeBlob(1, 6)
                                .set("firmware_timestamp", counts.time)
                                .set("accumulation_counter", counts.cycles)
                                .set("ppt_residency_acc", counts.ppt)
                                .set("socket_thm_residency_acc", counts.socket)
                                .set("hbm_thm_residency_acc", counts.hbm)
                                .bytes();
  GpuMetricsBlob blob;
  blob.parse(bytes);
  return blob;
}

TEST(ThrottleResidency, IsTheShareOfTheFirmwaresCyclesTimesItsTime) {
  ThrottleResidency residency({kPpt, {}, {}});
  EXPECT_EQ(residency.advance(blob_of({5 * kSecond, 1000, 700})).value, 0);
  EXPECT_EQ(residency.advance(blob_of({7 * kSecond, 3000, 1200})).value, 0.5);  // 500 of 2000 cycles in 2 s
  EXPECT_EQ(residency.advance(blob_of({7 * kSecond, 3000, 1200})).value, 0.5);  // the same table again
  EXPECT_EQ(residency.advance(blob_of({8 * kSecond, 4000, 2200})).value, 1.5);
}

TEST(ThrottleResidency, OfSeveralTheOneThatGrewMostCounts) {
  ThrottleResidency residency({kSocket, kHbm, {}});
  residency.advance(blob_of({1 * kSecond, 0}));
  EXPECT_EQ(residency.advance(blob_of({2 * kSecond, 1000, 0, 250, 500})).value, 0.5);
  EXPECT_EQ(residency.advance(blob_of({3 * kSecond, 2000, 0, 1250, 500})).value, 1.5);
}

TEST(ThrottleResidency, CountersOf32BitsWrap) {
  ThrottleResidency residency({kPpt, {}, {}});
  residency.advance(blob_of({1 * kSecond, 0xffffff00, 0xfffffff0}));
  EXPECT_EQ(residency.advance(blob_of({2 * kSecond, 0x100, 0xf0})).value, 0.5);
}

TEST(ThrottleResidency, AFirmwareThatStartedAnewAddsNothing) {
  ThrottleResidency residency({kPpt, {}, {}});
  residency.advance(blob_of({9 * kSecond, 9000, 500}));
  EXPECT_EQ(residency.advance(blob_of({1 * kSecond, 1000, 800})).value, 0);  // the firmware's clock went back
  EXPECT_EQ(residency.advance(blob_of({2 * kSecond, 2000, 1300})).value, 0.5);
  EXPECT_EQ(residency.advance(blob_of({3 * kSecond, 2100, 1600})).value, 0.5);  // more than all cycles
}

TEST(ThrottleResidency, WithoutAllOfItThereIsNone) {
  ThrottleResidency residency({kPpt, {}, {}});
  GpuMetricsBlob blob;
  EXPECT_EQ(residency.advance(blob).status, ReadStatus::unsupported);
  blob.parse(FakeBlob(1, 6).set("ppt_residency_acc", 1).bytes());
  EXPECT_EQ(residency.advance(blob).status, ReadStatus::unsupported);
  blob.parse(FakeBlob(1, 5).bytes());
  EXPECT_EQ(residency.advance(blob).status, ReadStatus::unsupported);
}

}  // namespace
}  // namespace gpumeter::amd
