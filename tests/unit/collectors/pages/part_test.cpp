#include "collectors/pages/part.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>

#include "base/log.hpp"
#include "collectors/api/machine.hpp"
#include "collectors/jobs/model/run_list.hpp"
#include "exporter/health/report.hpp"
#include "exporter/store/store.hpp"
#include "tests/fakes/tree.hpp"
#include "tests/fakes/walked.hpp"

// Given a folder, when a turn, then exactly this page.

namespace gpumeter {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr uid_t kAlice = 4711, kMallory = 4712;
constexpr MetricDescriptor kPower{"gpu_power_watts", "Power.", "watts", MetricType::gauge};

class PagesTest : public testing::Test {
 protected:
  PagesTest() {
    const MetricDescriptor* const known[] = {&kPower};
    store_.reserve(known);
    settings_.folders = {folder_.path()};
    settings_.trusted = {};
    DeviceInfo info;
    info.uuid = "GPU-a";
    machine_.known_devices.publish({{"nvidia", 3, info, ""}});
  }

  void SetUp() override { part_ = open(); }

  std::shared_ptr<Part> open() {
    return pages::kPart.open({.name = "pages",
                              .store = store_,
                              .machine = machine_,
                              .clock = clock_,
                              .log = log_,
                              .paths = paths_,
                              .settings = &settings_});
  }

  /// A page of this user, which is replaced as a whole.
  void write(const std::string& name, std::string_view text, uid_t owner = 0) {
    folder_.write("draft", text);
    if (chown((folder_ / "draft").c_str(), owner, owner) != 0) FAIL() << "cannot give the file away";
    std::filesystem::rename(folder_ / "draft", folder_ / name);
  }

  void age(const std::string& name, int seconds) {
    const timespec then{time(nullptr) - seconds, 0};
    const timespec times[] = {then, then};
    ASSERT_EQ(utimensat(AT_FDCWD, (folder_ / name).c_str(), times, 0), 0);
  }

  /// The page without gpumeter_page_age_seconds.
  std::string turn() {
    part_->turn(clock_.monotonic());
    std::string kept;
    const std::string page = walked(store_);
    for (std::size_t at = 0; at < page.size();) {
      const std::size_t end = page.find('\n', at) + 1;
      if (!page.substr(at).starts_with("gpumeter_page_age_seconds")) kept += page.substr(at, end - at);
      at = end;
    }
    return kept;
  }

  bool can_give_away() const { return geteuid() == 0; }

  Tree folder_{{}};
  const SystemClock clock_;
  Log log_{clock_, {}};
  Machine machine_;
  const Paths paths_;
  Store store_;
  pages::Settings settings_;
  std::shared_ptr<Part> part_;
};

TEST_F(PagesTest, ShowsAFileAndLeavesWithIt) {
  EXPECT_EQ(turn(), "");
  folder_.write("backup.prom", "# TYPE backup_bytes gauge\nbackup_bytes{disk=\"sda\"} 7\n");
  EXPECT_EQ(turn(), "backup_bytes{disk=\"sda\"} 7\ngpumeter_page_up{page=\"backup\"} 1\n");
  EXPECT_THAT(walked(store_), HasSubstr("gpumeter_page_age_seconds{page=\"backup\"} 0"));
  folder_.write("backup.prom.tmp", "other 1\n");
  folder_.write(".hidden.prom", "other 1\n");
  folder_.write("odd name.prom", "other 1\n");
  EXPECT_EQ(turn(), "backup_bytes{disk=\"sda\"} 7\ngpumeter_page_up{page=\"backup\"} 1\n");
  std::filesystem::remove(folder_ / "backup.prom");
  EXPECT_EQ(turn(), "");
}

TEST_F(PagesTest, OneBadLineRefusesItsFileOnly) {
  folder_.write("good.prom", "good 1\n");
  folder_.write("bad.prom", "fine 1\nbroken\n");
  EXPECT_EQ(turn(), "good{} 1\ngpumeter_page_up{page=\"bad\"} 0\ngpumeter_page_up{page=\"good\"} 1\n");
  folder_.write("bad.prom", "fine 1\n\n");
  EXPECT_EQ(turn(),
            "fine{} 1\ngood{} 1\ngpumeter_page_up{page=\"bad\"} 1\ngpumeter_page_up{page=\"good\"} 1\n");
}

TEST_F(PagesTest, APageLeavesWhenItIsTooOld) {
  folder_.write("default.prom", "first 1\n");
  folder_.write("own.prom", "# gpumeter: expires 1h\nsecond 1\n");
  age("default.prom", 400);
  age("own.prom", 400);
  EXPECT_EQ(turn(), "gpumeter_page_up{page=\"default\"} 0\ngpumeter_page_up{page=\"own\"} 1\nsecond{} 1\n");
  EXPECT_THAT(walked(store_), HasSubstr("gpumeter_page_age_seconds{page=\"default\"} 40"));
  age("own.prom", 4000);
  EXPECT_EQ(turn(), "gpumeter_page_up{page=\"default\"} 0\ngpumeter_page_up{page=\"own\"} 0\n");
  age("default.prom", -100'000);
  EXPECT_THAT(turn(), HasSubstr("first{} 1\n"));
  EXPECT_THAT(walked(store_), HasSubstr("gpumeter_page_age_seconds{page=\"default\"} 0"))
      << "a time in the future";
}

TEST_F(PagesTest, AFamilyHasOneTypeAndHelpText) {
  folder_.write("1.prom", "# HELP a One.\n# TYPE a gauge\na{n=\"1\"} 1\n");
  EXPECT_THAT(turn(), HasSubstr("a{n=\"1\"} 1\n"));
  folder_.write("0.prom", "# HELP a Two.\n# TYPE a gauge\na{n=\"0\"} 1\n");
  EXPECT_EQ(turn(), "a{n=\"1\"} 1\ngpumeter_page_up{page=\"0\"} 0\ngpumeter_page_up{page=\"1\"} 1\n")
      << "the first one counts";
  folder_.write("0.prom", "# TYPE a gauge\na{n=\"0\"} 2\n");
  EXPECT_THAT(turn(), HasSubstr("a{n=\"0\"} 2\n")) << "no help text is no other help text";
}

TEST_F(PagesTest, AFamilyMayChangeWithItsFile) {
  folder_.write("1.prom", "# TYPE a gauge\na 1\n");
  turn();
  folder_.write("1.prom",
                "# TYPE a histogram\na_bucket{le=\"+Inf\"} 1\na_sum 2\na_count 1\n# TYPE b gauge\nb 1\n");
  EXPECT_EQ(turn(),
            "a/bucket{le=\"+Inf\"} 1\na/sum{} 2\na/count{} 1\nb{} 1\ngpumeter_page_up{page=\"1\"} 1\n");
  folder_.write("1.prom", "# TYPE a_sum counter\na_sum 3\n");
  EXPECT_EQ(turn(), "a_sum{} 3\ngpumeter_page_up{page=\"1\"} 1\n");
}

TEST_F(PagesTest, RootMayUseTheCatalogueAndLabelsAreCompleted) {
  folder_.write("p.prom",
                "# HELP gpu_power_watts Power.\n# TYPE gpu_power_watts gauge\n"
                "gpu_power_watts{uuid=\"GPU-a\"} 1\ngpu_power_watts{gpu=\"3\",x=\"1\"} "
                "2\ngpu_power_watts{gpu=\"4\"} 3\n");
  EXPECT_EQ(
      turn(),
      "gpu_power_watts{uuid=\"GPU-a\",gpu=\"3\"} 1\ngpu_power_watts{gpu=\"3\",x=\"1\",uuid=\"GPU-a\"} 2\n"
      "gpu_power_watts{gpu=\"4\"} 3\ngpumeter_page_up{page=\"p\"} 1\n");
  folder_.write(
      "p.prom",
      "# HELP gpu_power_watts Another.\n# TYPE gpu_power_watts gauge\ngpu_power_watts{gpu=\"3\"} 1\n");
  EXPECT_EQ(turn(), "gpumeter_page_up{page=\"p\"} 0\n");
}

TEST_F(PagesTest, AUserSpeaksAsItsAuthor) {
  if (!can_give_away()) GTEST_SKIP() << "only root can give files away";
  write("a.prom", "app{user=\"4711\",author=\"4711\"} 1\n", kAlice);
  EXPECT_EQ(turn(), "app{user=\"4711\",author=\"4711\"} 1\ngpumeter_page_up{page=\"a\",author=\"4711\"} 1\n");
  for (const char* forged : {"gpu_up 1\n", "a 1\na{author=\"4711\"} 1\n", "gpumeter_up 1\n", "process_x 1\n",
                             "ml_loss 1\n", "up 1\n", "ALERTS{alertname=\"x\"} 1\n", "a:b 1\n",
                             "DCGM_FI_DEV_GPU_UTIL 1\n", "app{user=\"4712\"} 1\n", "app{author=\"root\"} 1\n",
                             "# TYPE gpu histogram\ngpu_bucket{le=\"+Inf\"} 1\ngpu_sum 1\ngpu_count 1\n"}) {
    write("a.prom", forged, kAlice);
    EXPECT_EQ(turn(), "gpumeter_page_up{page=\"a\",author=\"4711\"} 0\n") << forged;
  }
}

TEST_F(PagesTest, ATrustedPageTakesTheNameOfAUsers) {
  if (!can_give_away()) GTEST_SKIP() << "only root can give files away";
  settings_.trusted = {"4712"};
  part_ = open();
  write("a.prom", "# TYPE disks counter\ndisks 1\n", kAlice);
  EXPECT_THAT(turn(), HasSubstr("disks{author=\"4711\"} 1\n"));
  write("z.prom", "# TYPE disks gauge\ndisks 2\n", kMallory);
  EXPECT_EQ(turn(),
            "disks{} 2\ngpumeter_page_up{page=\"a\",author=\"4711\"} 0\ngpumeter_page_up{page=\"z\"} 1\n");
}

TEST_F(PagesTest, WhatIsNoPageIsRefusedAndNothingIsFollowed) {
  folder_.write("secret", "secret 1\n");
  folder_.write("link.prom", "-> secret");
  std::filesystem::create_hard_link(folder_ / "secret", folder_ / "hard.prom");
  ASSERT_EQ(mkfifo((folder_ / "fifo.prom").c_str(), 0644), 0);
  std::filesystem::create_directory(folder_ / "folder.prom");
  folder_.write("huge.prom", std::string(pages::kMostBytes + 1, '\n'));
  std::string series;
  for (std::size_t i = 0; i <= pages::kMostSeries; ++i) series += "a{n=\"" + std::to_string(i) + "\"} 1\n";
  folder_.write("many.prom", series);
  std::string down;
  for (const char* page : {"fifo", "folder", "hard", "huge", "link", "many"})
    down += "gpumeter_page_up{page=\"" + std::string(page) + "\"} 0\n";
  EXPECT_EQ(turn(), down);
}

TEST_F(PagesTest, OneUserTakesNoMoreThanItsShare) {
  if (!can_give_away()) GTEST_SKIP() << "only root can give files away";
  std::string series;
  for (std::size_t i = 0; i < pages::kMostSeries; ++i) series += "{n=\"" + std::to_string(i) + "\"} 1\n";
  for (int page = 0; page < 70; ++page) write("m" + std::to_string(page + 100) + ".prom", "x 1\n", kMallory);
  const auto of_page = [&](const std::string& name) {
    std::string text = series;
    for (std::size_t at = 0; (at = text.find("{n", at)) != std::string::npos; at += name.size() + 2)
      text.insert(at, name);
    return text;
  };
  for (const char* name : {"a", "b", "c"}) write(std::string(name) + ".prom", of_page(name), kAlice);
  const std::string page = turn();
  EXPECT_THAT(
      page,
      HasSubstr(
          "gpumeter_page_up{page=\"a\",author=\"4711\"} 1\ngpumeter_page_up{page=\"b\",author=\"4711\"} 1\n"
          "gpumeter_page_up{page=\"c\",author=\"4711\"} 0\n"));
  EXPECT_THAT(page, HasSubstr("page=\"m163\""));
  EXPECT_THAT(page, Not(HasSubstr("page=\"m164\""))) << "64 pages";
  EXPECT_THAT(page, HasSubstr("x{author=\"4712\"} 1\n")) << "one of those that have the same series";
}

}  // namespace
}  // namespace gpumeter
