#include "collectors/intel/pmu/counter.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <utility>

#include "collectors/intel/pmu/text.hpp"
#include "collectors/sources/sysfs.hpp"

namespace gpumeter::intel::pmu {
namespace {

constexpr const char* kPmus = "/sys/bus/event_source/devices/";

std::uint64_t count_of(Counter& counter) {
  std::uint64_t count = 0;
  EXPECT_EQ(counter.read(count), ReadStatus::ok);
  return count;
}

/// Opens the event, or skips the test if this process may not.
std::unique_ptr<Counter> opened(const Event& event) {
  KernelOpener opener;
  if (permission(opener) != ReadStatus::ok) return nullptr;
  Opened result = opener.open(event);
  if (auto* const counter = std::get_if<std::unique_ptr<Counter>>(&result)) return std::move(*counter);
  return nullptr;
}

TEST(KernelCounter, CountsTheTimeOfAProcessorOfThisMachine) {
  const std::unique_ptr<Counter> counter = opened({PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, 0});
  if (!counter) GTEST_SKIP() << "perf_event_open is not permitted here";
  const std::uint64_t before = count_of(*counter);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_GT(count_of(*counter), before);
}

// The PMU `msr` is described as those of i915 and xe are: type, format and events.
TEST(KernelCounter, CountsAnEventThatItsPmuDescribes) {
  const std::string folder = std::string(kPmus) + "msr";
  const auto type = sysfs::read_integer(folder + "/type");
  const auto field = parse_field(sysfs::read_text(folder + "/format/event"));
  const auto event = term_of(sysfs::read_text(folder + "/events/tsc"), "event");
  if (!type || !field || !event) GTEST_SKIP() << "this kernel has no PMU msr";
  const auto config = field->place(*event);
  ASSERT_TRUE(config);
  const std::unique_ptr<Counter> counter = opened({static_cast<std::uint32_t>(*type), *config, 0});
  if (!counter) GTEST_SKIP() << "perf_event_open is not permitted here";
  const std::uint64_t before = count_of(*counter);
  EXPECT_GT(count_of(*counter), before);
}

TEST(KernelCounter, AnEventThatThePmuLacksIsRefused) {
  KernelOpener opener;
  if (permission(opener) != ReadStatus::ok) GTEST_SKIP() << "perf_event_open is not permitted here";
  const Opened none = opener.open({PERF_TYPE_SOFTWARE, 0xffff, 0});
  ASSERT_TRUE(std::holds_alternative<ReadStatus>(none));
  EXPECT_EQ(std::get<ReadStatus>(none), ReadStatus::gone);
}

/// The result of permission() in a child without CAP_PERFMON and CAP_SYS_ADMIN, as another user.
ReadStatus permission_of_nobody() {
  const pid_t child = ::fork();
  if (child == 0) {
    if (::geteuid() == 0 && ::setuid(65534) != 0) ::_exit(99);
    KernelOpener opener;
    ::_exit(static_cast<int>(permission(opener)));
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return static_cast<ReadStatus>(WEXITSTATUS(status));
}

TEST(PmuPermission, IsDeniedWithoutTheCapability) {
  const auto paranoid = sysfs::read_integer("/proc/sys/kernel/perf_event_paranoid");
  if (!paranoid || *paranoid <= 0) GTEST_SKIP() << "every user may open events here";
  KernelOpener opener;
  if (permission(opener) == ReadStatus::unsupported) GTEST_SKIP() << "this machine has no perf_event_open";
  EXPECT_EQ(permission_of_nobody(), ReadStatus::denied);
}

TEST(PmuPermission, TheMessageNamesTheCapabilityAndTheDropIn) {
  EXPECT_THAT(denial_note(), testing::HasSubstr("CAP_PERFMON"));
  EXPECT_THAT(denial_note(), testing::HasSubstr("pmu.conf"));
}

}  // namespace
}  // namespace gpumeter::intel::pmu
