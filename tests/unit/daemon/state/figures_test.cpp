#include "daemon/state/figures.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "collectors/jobs/model/run_list.hpp"
#include "exporter/health/report.hpp"
#include "tests/fakes/fake_clock.hpp"

namespace gpumeter {
namespace {

namespace fs = std::filesystem;
using std::chrono::hours;

constexpr const char* kSpent = "the run's budget of the day is spent";

/// The daemon's figures in a state folder, over restarts.
class FiguresTest : public testing::Test {
 protected:
  FiguresTest() {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    write("boot", "first");
    write("machine", "11111111111111111111111111111111");
  }
  ~FiguresTest() override { fs::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ + "/" + name) << text << '\n';
  }
  /// The daemon ends, and another one starts.
  void restart() {
    if (file_) file_->save_last();
    budget_ = std::make_shared<profiles::BudgetBook>(profiles::Budget{1, 5, hours(1)}, clock_);
    const auto figures =
        figures_of({std::make_shared<TotalsBook>(), nullptr, nullptr, std::make_shared<RunsShelf>(), budget_,
                    std::make_shared<PartHost>(PartHost::Environment{store_, machine_, clock_, log_, paths_},
                                               scheduler_)});
    file_.emplace(FiguresFolders{folder_}, clock_, log_, figures,
                  MachineFiles{folder_ + "/machine", folder_ + "/boot"});
    file_->read();
    const Result<Done> restored = file_->restore();
    ASSERT_TRUE(restored) << restored.error().message();
  }

  const std::string folder_ = testing::TempDir() + "/figures-of-" + std::to_string(getpid());
  const profiles::RunName run_{"alice", "bert"};
  FakeClock clock_;
  Log log_{clock_, {LogLevel::error, LogFormat::logfmt}};
  std::shared_ptr<profiles::BudgetBook> budget_;
  Store store_;
  Machine machine_;
  Paths paths_;
  Scheduler scheduler_{clock_};
  std::optional<FiguresFile> file_;
};

TEST_F(FiguresTest, TheBudgetOfProfilesHoldsOverARestartAndAReboot) {
  restart();
  budget_->spend(run_);
  restart();
  EXPECT_EQ(budget_->refusal(run_), kSpent);
  write("boot", "second");
  restart();
  EXPECT_EQ(budget_->refusal(run_), kSpent);
  clock_.advance(hours(24));
  restart();
  EXPECT_EQ(budget_->refusal(run_), std::nullopt);
}

TEST_F(FiguresTest, TheBudgetOfAnotherMachineIsNotContinued) {
  restart();
  budget_->spend(run_);
  restart();
  file_->save_last();
  write("machine", "22222222222222222222222222222222");
  file_.reset();
  restart();
  EXPECT_EQ(budget_->refusal(run_), std::nullopt);
}

}  // namespace
}  // namespace gpumeter
