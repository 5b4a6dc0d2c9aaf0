#include "collectors/sources/fdinfo/look.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/descriptor.hpp"
#include "tests/fakes/fake_drm_procfs.hpp"
#include "tests/fakes/real_clock.hpp"

namespace gpumeter::fdinfo {
namespace {

const std::shared_ptr<const Clock> kClock = std::make_shared<SystemClock>();
constexpr const char* kCard = "0000:03:00.0";
constexpr const char* kNode = "/dev/dri/renderD9128";  // no machine has so many
constexpr const char* kText =
    "drm-driver: amdgpu\ndrm-pdev: 0000:03:00.0\ndrm-client-id: 5\ndrm-engine-gfx: 7 ns\n";

class LookTest : public testing::Test {
 protected:
  Look look(int pid) {
    return look_at({procfs_.procfs(),
                    procfs_.sysfs(),
                    {kCard, "fde40000.npu"},
                    kClock,
                    kRealClock.monotonic() + std::chrono::seconds(60)},
                   pid);
  }
  FakeDrmProcfs procfs_;
};

TEST_F(LookTest, ReadsTheClientsOfADevice) {
  procfs_.node("renderD9128", kCard);
  procfs_.add(10, 4711);
  procfs_.open(10, 3, "/dev/null", "pos: 0\n");
  procfs_.open(10, 4, kNode, kText);
  procfs_.open(10, 5, "socket:[1]", "");
  const Look found = look(10);
  EXPECT_EQ(found.outcome, LookOutcome::ok);
  EXPECT_EQ(found.start_ticks, 4711u);
  EXPECT_TRUE(found.holds_drm);
  ASSERT_EQ(found.clients.size(), 1u);
  EXPECT_EQ(found.clients[0].device, kCard);
  EXPECT_EQ(found.clients[0].id, 5u);
  EXPECT_EQ(found.clients[0].fd, 4);
  ASSERT_EQ(found.clients[0].engines.size(), 1u);
  EXPECT_EQ(found.clients[0].engines[0].count, 7u);
}

// A client hides behind descriptors that take longer to read than the scan may.
TEST_F(LookTest, SaysThatItHasNotReadAll) {
  procfs_.add(10);
  for (int fd = 3; fd < 1100; ++fd) procfs_.open(10, fd, "/dev/null", "pos: 0\n");
  class LateClock final : public Clock {
   public:
    Nanoseconds monotonic() const noexcept override { return std::chrono::seconds(is_first_++ == 0 ? 0 : 2); }
    Nanoseconds boottime() const noexcept override { return {}; }
    Nanoseconds realtime() const noexcept override { return {}; }

   private:
    mutable int is_first_ = 0;
  };
  const auto order = [&](Nanoseconds until) {
    return LookOrder{procfs_.procfs(), procfs_.sysfs(), {kCard}, std::make_shared<LateClock>(), until};
  };
  EXPECT_TRUE(look_at(order(std::chrono::seconds(1)), 10).is_cut);
  EXPECT_FALSE(look_at(order(std::chrono::seconds(3)), 10).is_cut);
}

TEST_F(LookTest, TwoDescriptorsOfAClientAreOne) {
  procfs_.add(10);
  procfs_.open(10, 4, kNode, kText);  // sysfs does not have the node: fdinfo names the device
  procfs_.open(10, 5, kNode, kText);
  procfs_.open(10, 6, kNode, "drm-driver: amdgpu\ndrm-pdev: 0000:03:00.0\ndrm-client-id: 6\n");
  EXPECT_EQ(look(10).clients.size(), 2u);
}

TEST_F(LookTest, ADeviceThatIsNotAskedForIsNotRead) {
  procfs_.node("renderD9128", "0000:04:00.0");
  procfs_.add(10);
  procfs_.open(10, 4, kNode, "drm-driver: xe\ndrm-pdev: 0000:03:00.0\ndrm-engine-: bad\n");
  const Look found = look(10);
  EXPECT_TRUE(found.holds_drm);
  EXPECT_TRUE(found.clients.empty());
  EXPECT_EQ(found.malformed, 0u);
}

TEST_F(LookTest, APlatformDeviceIsNamedBySysfs) {
  procfs_.node("renderD9129", "fde40000.npu");
  procfs_.add(10);
  procfs_.open(10, 4, "/dev/dri/renderD9129", "drm-driver: panthor\ndrm-client-id: 1\n");
  procfs_.open(10, 5, "/dev/dri/renderD9129", "pos: 0\n");  // no keys
  const Look found = look(10);
  ASSERT_EQ(found.clients.size(), 1u);
  EXPECT_EQ(found.clients[0].device, "fde40000.npu");
}

TEST_F(LookTest, MalformedLinesAreCounted) {
  procfs_.add(10);
  procfs_.open(10, 4, kNode, std::string(kText) + "drm-total-vram: 1 kB\ndrm-resident-vr");
  const Look found = look(10);
  EXPECT_EQ(found.malformed, 2u);
  EXPECT_EQ(found.clients.size(), 1u);
}

TEST_F(LookTest, ThreadsOfTheKernelZombiesAndNobody) {
  procfs_.add(2, 1, 'S', 0x00208040);  // kthreadd
  procfs_.add(10, 1, 'Z');
  EXPECT_EQ(look(2).outcome, LookOutcome::kernel);
  EXPECT_EQ(look(10).outcome, LookOutcome::ended);
  EXPECT_EQ(look(11).outcome, LookOutcome::ended);
}

TEST_F(LookTest, AfterTheBudgetNothingIsRead) {
  procfs_.add(10);
  const LookOrder order{procfs_.procfs(), procfs_.sysfs(), {kCard}, kClock, Nanoseconds{1}};
  EXPECT_EQ(look_at(order, 10).outcome, LookOutcome::skipped);
}

TEST(Look, TheKernelsOwnProcfs) {
  const Look found = look_at(
      {"/proc", "/sys", {kCard}, kClock, kRealClock.monotonic() + std::chrono::seconds(60)}, ::getpid());
  EXPECT_EQ(found.outcome, LookOutcome::ok);
  EXPECT_GT(found.start_ticks, 0u);
  EXPECT_TRUE(found.clients.empty());
}

TEST(Look, OneOpenFileIsItsDuplicate) {
  const Descriptor file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const Descriptor other(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const Descriptor duplicate(::dup(file.number()));
  const auto same = is_same_file(::getpid(), file.number(), ::getpid(), duplicate.number());
  if (!same) GTEST_SKIP() << "this kernel has no kcmp(2)";
  EXPECT_EQ(same, true);
  EXPECT_EQ(is_same_file(::getpid(), file.number(), ::getpid(), other.number()), false);
  EXPECT_EQ(is_same_file(::getpid(), file.number(), ::getpid(), 99999), std::nullopt);
}

}  // namespace
}  // namespace gpumeter::fdinfo
