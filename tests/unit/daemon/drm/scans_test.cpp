#include "daemon/drm/scans.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/fakes/fake_drm_procfs.hpp"
#include "tests/fakes/real_clock.hpp"

namespace gpumeter {
namespace {

using std::chrono::seconds;

constexpr const char* kCard = "0000:03:00.0";

template <class Condition>
bool becomes_true(Condition condition) {
  for (int i = 0; i < 3000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

class DrmScansTest : public testing::Test {
 protected:
  DrmScansTest() {
    procfs_.add(10);
    procfs_.open(
        10, 3, "/dev/dri/renderD9128",
        "drm-driver: amdgpu\ndrm-pdev: 0000:03:00.0\ndrm-client-id: 1\ndrm-resident-vram: 4 KiB\ndrm-x\n");
    scans_->start(scheduler_);
    EXPECT_TRUE(scheduler_.start());
  }
  ~DrmScansTest() override { EXPECT_TRUE(scheduler_.stop(Scheduler::kForever)); }
  fdinfo::Scanner::Sources sources() {
    fdinfo::Scanner::Sources sources{procfs_.procfs(), procfs_.sysfs(), nullptr};
    sources.look = [this](const fdinfo::LookOrder& order, int pid) {
      ++looks_;
      return fdinfo::look_at(order, pid);
    };
    return sources;
  }

  FakeDrmProcfs procfs_;
  std::atomic<int> looks_ = 0;
  Scheduler scheduler_{kRealClock};
  const std::shared_ptr<DrmScans> scans_ = std::make_shared<DrmScans>(sources(), kRealClock);
};

TEST_F(DrmScansTest, ScansOnlyWhileSomebodyWatches) {
  EXPECT_EQ(scans_->use_of(kCard), nullptr);
  EXPECT_EQ(scans_->figures(), std::nullopt);
  EXPECT_EQ(looks_, 0);
  {
    const std::shared_ptr<void> watch = scans_->watch(kCard, seconds(1));
    EXPECT_TRUE(becomes_true([&] { return scans_->use_of(kCard) != nullptr; }));
    const auto use = scans_->use_of(kCard);
    ASSERT_EQ(use->processes.size(), 1u);
    EXPECT_EQ(use->processes[0].pid, 10);
    EXPECT_EQ(use->processes[0].device_bytes, 4096);
    EXPECT_EQ(scans_->use_of("0000:04:00.0"), nullptr);
    ASSERT_NE(scans_->figures(), std::nullopt);
    EXPECT_EQ(scans_->figures()->inaccessible, 0u);
    EXPECT_GE(scans_->figures()->malformed, 1u);
    EXPECT_TRUE(becomes_true([&] { return scans_->use_of(kCard)->scanned_at > use->scanned_at; }));
  }
  EXPECT_EQ(scans_->use_of(kCard), nullptr);
  EXPECT_EQ(scans_->figures(), std::nullopt);
}

TEST_F(DrmScansTest, AWorkloadThatBeginsIsNotKeptWaiting) {
  scans_->scan_soon();
  const std::shared_ptr<void> watch = scans_->watch(kCard, std::chrono::hours(1));
  EXPECT_TRUE(becomes_true([&] { return scans_->use_of(kCard) != nullptr; }));
  procfs_.add(11);
  procfs_.open(11, 3, "/dev/dri/renderD9128",
               "drm-driver: amdgpu\ndrm-pdev: 0000:03:00.0\ndrm-client-id: 2\ndrm-resident-vram: 8 KiB\n");
  EXPECT_TRUE(becomes_true([&] {
    scans_->scan_soon();
    return scans_->use_of(kCard)->processes.size() == 2;
  }));
}

TEST_F(DrmScansTest, AWatchMayOutliveItsScanner) {
  std::shared_ptr<void> watch;
  {
    const auto other = std::make_shared<DrmScans>(
        fdinfo::Scanner::Sources{procfs_.procfs(), procfs_.sysfs(), nullptr}, kRealClock);
    watch = other->watch(kCard, seconds(1));
  }
  watch.reset();
}

}  // namespace
}  // namespace gpumeter
