#include "daemon/state/figures_file.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace gpumeter {
namespace {

namespace fs = std::filesystem;

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
    file_.emplace(folder_, clock_, log_, kept(), MachineFiles{folder_ + "/machine", folder_ + "/boot"});
    file_->read();
    file_->report(file_->restore());
  }
  KeptFigures kept() {
    return {[this](const SavedState& state) -> Result<Done> {
              restored_ = state;
              return accepts_ ? Result<Done>(Done{}) : Error("line 1");
            },
            [this] {
              return StateSections{{"x", figures_}};
            }};
  }
  std::string path() const { return folder_ + "/figures.state"; }
  bool is_set_aside() const { return !fs::exists(path()) && fs::exists(path() + ".bad"); }

  const std::string folder_ = testing::TempDir() + "/figures-" + std::to_string(getpid());
  const SystemClock clock_;
  Log log_{clock_, {config::LogLevel::error, config::LogFormat::logfmt}};
  std::string figures_ = "a\t1\n";
  bool accepts_ = true;
  std::optional<SavedState> restored_;
  std::optional<FiguresFile> file_;
};

TEST_F(FiguresFileTest, AreReadBackAfterARestart) {
  start();
  EXPECT_FALSE(restored_) << "there is no file yet";
  file_->save();
  start();
  ASSERT_TRUE(restored_);
  EXPECT_EQ(restored_->section("x"), figures_);
  EXPECT_TRUE(restored_->is_of_this_boot);
}

TEST_F(FiguresFileTest, OfAnEarlierBootAreMarked) {
  start();
  file_->save();
  boot("second");
  start();
  ASSERT_TRUE(restored_);
  EXPECT_FALSE(restored_->is_of_this_boot);
}

TEST_F(FiguresFileTest, OfAnotherMachineAreIgnored) {
  start();
  file_->save();
  machine("22222222222222222222222222222222");
  start();
  EXPECT_FALSE(restored_);
  file_->save();
  start();
  EXPECT_TRUE(restored_) << "the file is this machine's now";
}

TEST_F(FiguresFileTest, ADamagedFileIsSetAside) {
  start();
  file_->save();
  fs::resize_file(path(), fs::file_size(path()) - 3);
  start();
  EXPECT_FALSE(restored_);
  EXPECT_TRUE(is_set_aside());
}

TEST_F(FiguresFileTest, AFileThatIsNotUnderstoodIsSetAside) {
  start();
  file_->save();
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

}  // namespace
}  // namespace gpumeter
