#include "collectors/intel/pmu.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/perf_event.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <utility>

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

std::optional<std::uint64_t> placed(std::string_view field, std::uint64_t value) {
  const std::optional<Field> parsed = parse_field(field);
  return parsed ? parsed->place(value) : std::nullopt;
}

TEST(PmuField, PlacesAValueInItsBits) {
  EXPECT_EQ(placed("config:0-11\n", 2), 2U);
  EXPECT_EQ(placed("config:20-27\n", 4), 4U << 20);
  EXPECT_EQ(placed("config:60-63\n", 1), std::uint64_t{1} << 60);
  EXPECT_EQ(placed("config:0-63\n", ~std::uint64_t{0}), ~std::uint64_t{0});
  EXPECT_EQ(placed("config:0-3,8-11", 0x21), 0x201U);
  EXPECT_EQ(placed("config:5", 1), 32U);
}

TEST(PmuField, RefusesAValueThatDoesNotFitAndATextThatIsNone) {
  EXPECT_EQ(placed("config:12-19", 256), std::nullopt);
  for (const char* const text : {"", "config", "config:", "config1:0-3", "config:9-3", "config:0-64",
                                 "config:0-", "config:a", "config:0,1,2,3,4"}) {
    EXPECT_FALSE(parse_field(text)) << text;
  }
}

TEST(PmuEvent, HasTerms) {
  EXPECT_EQ(term_of("event=0x02\n", "event"), 2U);
  EXPECT_EQ(term_of("config=0x100003", "config"), 0x100003U);
  EXPECT_EQ(term_of("gt=1,event=17", "event"), 17U);
  EXPECT_EQ(term_of("event=0x02", "config"), std::nullopt);
  EXPECT_EQ(term_of("event=0xzz", "event"), std::nullopt);
  EXPECT_EQ(term_of("", "event"), std::nullopt);
}

TEST(PmuCpus, TheFirst) {
  EXPECT_EQ(first_cpu("0\n"), 0);
  EXPECT_EQ(first_cpu("4-7,12\n"), 4);
  EXPECT_EQ(first_cpu("3,5"), 3);
  EXPECT_EQ(first_cpu(""), std::nullopt);
  EXPECT_EQ(first_cpu("-1"), std::nullopt);
  EXPECT_EQ(first_cpu("0x1"), std::nullopt);
}

TEST(PmuEvent, OfAnEngine) {
  const std::optional<EngineName> engine = parse_busy_event("vcs1-busy");
  ASSERT_TRUE(engine);
  EXPECT_EQ(engine->engine_class, "vcs");
  EXPECT_EQ(engine->instance, 1U);
  for (const char* const name : {"rcs0-wait", "busy", "-busy", "0-busy", "rcs-busy", "rcs0.unit"}) {
    EXPECT_FALSE(parse_busy_event(name)) << name;
  }
}

}  // namespace
}  // namespace gpumeter::intel::pmu
