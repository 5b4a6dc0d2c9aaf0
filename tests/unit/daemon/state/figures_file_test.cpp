#include "daemon/state/figures_file.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/fakes/fake_clock.hpp"

namespace gpumeter {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

/// A folder with files of a machine.
class FiguresFileTest : public testing::Test {
 protected:
  FiguresFileTest() {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    boot("first");
    machine("11111111111111111111111111111111");
  }
  ~FiguresFileTest() override { fs::remove_all(folder_); }

  void boot(const std::string& id) { std::ofstream(folder_ + "/boot") << id << '\n'; }
  void machine(const std::string& id) { std::ofstream(folder_ + "/machine") << id << '\n'; }

  /// A start of the daemon.
  void start() {
    restored_.reset();
    file_.emplace(FiguresFolders{folder_, runtime_}, clock_, log_, kept(),
                  MachineFiles{folder_ + "/machine", folder_ + "/boot"});
    file_->read();
    file_->report(file_->restore());
  }
  KeptFigures kept() {
    return {[this](const SavedState& state) -> Result<Done> {
              restored_ = state;
              return accepts_ ? Result<Done>(Done{}) : Error("line 1");
            },
            [this] {
              ++collected_;
              return StateSections{{"x", figures_}};
            }};
  }
  std::string path() const { return folder_ + "/figures.state"; }
  bool is_set_aside() const { return !fs::exists(path()) && fs::exists(path() + ".bad"); }

  /// The figures grow; `later`, the thread "state" takes a turn. Returns the pause until its next one.
  Nanoseconds grow(const std::string& figures, Nanoseconds later, bool was_served = false) {
    figures_ = figures;
    clock_.advance(later);
    return file_->save_if_due(was_served);
  }
  /// What a start would restore.
  std::string restored() {
    start();
    return restored_ ? restored_->section("x") : "nothing";
  }

  const std::string folder_ = testing::TempDir() + "/figures-" + std::to_string(getpid());
  const std::string runtime_ = folder_ + "/runtime";
  FakeClock clock_;
  Log log_{clock_, {LogLevel::error, LogFormat::logfmt}};
  std::string figures_ = "a\t1\n";
  int collected_ = 0;
  bool accepts_ = true;
  std::optional<SavedState> restored_;
  std::optional<FiguresFile> file_;
};

TEST_F(FiguresFileTest, AreReadBackAfterARestart) {
  start();
  EXPECT_FALSE(restored_) << "there is no file yet";
  file_->save_last();
  start();
  ASSERT_TRUE(restored_);
  EXPECT_EQ(restored_->section("x"), figures_);
  EXPECT_TRUE(restored_->is_of_this_boot);
}

TEST_F(FiguresFileTest, OfAnEarlierBootAreMarked) {
  start();
  file_->save_last();
  boot("second");
  start();
  ASSERT_TRUE(restored_);
  EXPECT_FALSE(restored_->is_of_this_boot);
}

TEST_F(FiguresFileTest, OfAnotherMachineAreIgnored) {
  start();
  file_->save_last();
  machine("22222222222222222222222222222222");
  start();
  EXPECT_FALSE(restored_);
  file_->save_last();
  start();
  EXPECT_TRUE(restored_) << "the file is this machine's now";
}

TEST_F(FiguresFileTest, ADamagedFileIsSetAside) {
  start();
  file_->save_last();
  fs::resize_file(path(), fs::file_size(path()) - 3);
  start();
  EXPECT_FALSE(restored_);
  EXPECT_TRUE(is_set_aside());
}

TEST_F(FiguresFileTest, AFileThatIsNotUnderstoodIsSetAside) {
  start();
  file_->save_last();
  accepts_ = false;
  start();
  EXPECT_TRUE(is_set_aside());
}

TEST_F(FiguresFileTest, AFileThatIsNotRegularIsSetAside) {
  fs::create_directory(path());
  start();
  EXPECT_FALSE(restored_);
  EXPECT_TRUE(is_set_aside());
}

TEST_F(FiguresFileTest, AfterACrashTheNewerCopyIsContinued) {
  start();
  grow("a\t1\n", 0s);
  grow("a\t2\n", 10s);
  EXPECT_EQ(grow("a\t3\n", 500ms), 500ms) << "a copy every second";
  EXPECT_EQ(restored(), "a\t2\n") << "it is not due yet";
  grow("a\t3\n", 0s);
  grow("a\t4\n", 1s);
  EXPECT_EQ(restored(), "a\t4\n");
  EXPECT_TRUE(restored_->is_of_this_boot);
}

TEST_F(FiguresFileTest, WhatAPageShowedIsCopiedAtOnce) {
  start();
  EXPECT_EQ(grow("a\t1\n", 0s), 1s);
  grow("a\t2\n", 300ms, true);
  EXPECT_EQ(grow("a\t3\n", 40ms, true), 60ms) << "100 ms after the last copy";
  grow("a\t4\n", 60ms);
  EXPECT_EQ(restored(), "a\t4\n");
}

TEST_F(FiguresFileTest, UnchangedFiguresAreNotCopiedAgain) {
  start();
  grow("a\t1\n", 0s);
  grow("a\t1\n", 1s);
  const auto written = fs::last_write_time(runtime_ + "/figures.state");
  fs::last_write_time(runtime_ + "/figures.state", written - 1h);
  grow("a\t1\n", 1s);
  EXPECT_EQ(collected_, 2);
  EXPECT_EQ(fs::last_write_time(runtime_ + "/figures.state"), written - 1h);
}

TEST_F(FiguresFileTest, ACopyOfAnotherBootOrADamagedOneIsNotContinued) {
  start();
  file_->save_if_due(false);
  grow("a\t2\n", 10s);
  grow("a\t3\n", 1s);
  boot("second");
  EXPECT_EQ(restored(), "a\t2\n");
  boot("first");
  EXPECT_EQ(restored(), "a\t3\n");
  fs::resize_file(runtime_ + "/figures.state", fs::file_size(runtime_ + "/figures.state") - 3);
  EXPECT_EQ(restored(), "a\t2\n");
  EXPECT_FALSE(is_set_aside());
}

TEST_F(FiguresFileTest, ACopyIsContinuedIfTheFileIsDamaged) {
  start();
  file_->save_if_due(false);
  grow("a\t2\n", 10s);
  grow("a\t3\n", 1s);
  fs::resize_file(path(), fs::file_size(path()) - 3);
  EXPECT_EQ(restored(), "a\t3\n");
}

TEST_F(FiguresFileTest, AtARegularEndTheCopyGoes) {
  start();
  file_->save_if_due(false);
  grow("a\t2\n", 1s);
  EXPECT_TRUE(fs::exists(runtime_ + "/figures.state"));
  figures_ = "a\t3\n";
  file_->save_last();
  EXPECT_FALSE(fs::exists(runtime_ + "/figures.state"));
  EXPECT_EQ(restored(), "a\t3\n");
}

}  // namespace
}  // namespace gpumeter
