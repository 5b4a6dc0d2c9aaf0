#include "collectors/files/readers.hpp"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string>

#include "collectors/api/catalog.hpp"
#include "collectors/files/context.hpp"
#include "tests/fakes/sampled_page.hpp"
#include "tests/fakes/tree.hpp"

namespace gpumeter::files {
namespace {

using std::chrono::seconds;

constexpr Traits kMean{.min = 0, .forgets = true};  // needs two readings

// clang-format off
constexpr auto kRows = std::to_array<Row>({
    {&catalog::busy_seconds, {}, {busiest, "core*/busy"}, 1, Tier::fast, {}, kPositive},
    {&catalog::pcie_received_bytes, {}, {wrapping_sum, "link*/words"}, 1, Tier::fast, {}, kPositive},
    {&catalog::power, {}, {file, "power_now"}, 1, Tier::fast},
    {&catalog::power, {}, {mean_rate, "energy"}, 1, Tier::fast, {}, kMean},
    {&catalog::fan_speed, {"fan", "0"}, {quotient, "fan / fan_max"}, 1, Tier::fast},
});
// clang-format on
constexpr Kind kKind = {.rows = kRows};

/// A device with the files that a test writes.
class FilesReaders : public testing::Test {
 protected:
  FilesReaders() { write("uevent", ""); }
  void write(const std::string& name, std::string_view content) { tree_.write("device/" + name, content); }

  void attach() {
    DeviceInfo info;
    info.source = tree_ / "device";
    page_.emplace(make_device(kKind, {tree_.path(), tree_.path()}));
    page_->attach(info);
  }
  std::string pass(seconds elapsed = seconds(1)) {
    page_->pass(Tier::fast, elapsed);
    return page_->text();
  }

  const Tree tree_{{}};
  std::optional<SampledPage> page_;
};

TEST_F(FilesReaders, TheBusiestCounterCountsAndSurvivesAReset) {
  write("core0/busy", "10\n");
  write("core1/busy", "20\n");
  attach();
  EXPECT_EQ(pass(), "gpu_busy_seconds_total 0\n");
  write("core0/busy", "15\n");
  write("core1/busy", "22\n");
  EXPECT_EQ(pass(), "gpu_busy_seconds_total 5\n");
  write("core0/busy", "16\n");
  write("core1/busy", "4\n");  // written to 0
  EXPECT_EQ(pass(), "gpu_busy_seconds_total 9\n");
}

TEST_F(FilesReaders, CountersOf32BitsWrap) {
  write("link0/words", "4294967290\n");
  write("link1/words", "100\n");
  attach();
  EXPECT_EQ(pass(), "gpu_pcie_received_bytes_total 0\n");
  write("link0/words", "4\n");
  write("link1/words", "105\n");
  EXPECT_EQ(pass(), "gpu_pcie_received_bytes_total 15\n");
}

TEST_F(FilesReaders, AFileWithoutAValueLeavesItsSeriesToTheNextRowUntilItAnswers) {
  write("power_now", "");
  write("energy", "1000\n");
  attach();
  EXPECT_EQ(pass(), "");
  write("energy", "1300\n");
  EXPECT_EQ(pass(), "gpu_power_watts 300\n");
  EXPECT_FALSE(page_->has_more(page_->now()));
  write("power_now", "250\n");
  page_->has_more(page_->now());
  for (int i = 0; i < 3; ++i) pass();
  EXPECT_FALSE(page_->has_more(page_->now()));
  pass();
  ASSERT_TRUE(page_->has_more(page_->now()));
  attach();
  EXPECT_EQ(pass(), "gpu_power_watts 250\n");
}

TEST_F(FilesReaders, AShareOfNothingIsNoValue) {
  write("fan", "1200\n");
  write("fan_max", "0\n");
  attach();
  EXPECT_EQ(pass(), "");
  write("fan_max", "2400\n");
  attach();
  EXPECT_EQ(pass(), "gpu_fan_speed_ratio{fan=\"0\"} 0.5\n");
}

}  // namespace
}  // namespace gpumeter::files
