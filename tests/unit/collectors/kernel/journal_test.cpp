#include "collectors/kernel/journal.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/fakes/tree.hpp"

// The end of the previous boot, from a journal that systemd's own program wrote.

namespace gpumeter::kernel {
namespace {

constexpr const char* kRemote = "/lib/systemd/systemd-journal-remote";
const std::string kBoots[] = {std::string(32, 'a'), std::string(32, 'b'), std::string(32, 'c')};

class JournalTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kRemote)) GTEST_SKIP() << kRemote << " is not installed";
  }
  /// One entry in the journal's export format (systemd.io/JOURNAL_EXPORT_FORMATS).
  void add(std::size_t boot, int second, const std::string& text, const std::string& facility = "0",
           const std::string& transport = "kernel") {
    const std::string time = std::to_string(1'700'000'000'000'000 + std::int64_t{second} * 1'000'000);
    entries_ += "__REALTIME_TIMESTAMP=" + time + "\n__MONOTONIC_TIMESTAMP=" + std::to_string(second) +
                "\n_BOOT_ID=" + kBoots[boot] + "\n_TRANSPORT=" + transport + "\nSYSLOG_FACILITY=" + facility +
                "\nMESSAGE=" + text + "\n\n";
  }
  std::string read(std::size_t boot, std::size_t most = 100) {
    tree_.write("export", entries_);
    const std::string command = std::string(kRemote) + " -o " + tree_ / "journal/system.journal" + " " +
                                tree_ / "export" + " > " + tree_ / "said" + " 2>&1";
    std::filesystem::create_directory(tree_ / "journal");
    EXPECT_EQ(std::system(command.c_str()), 0);
    std::string text;
    for (const JournalLine& line : lines_of_previous_boot(tree_ / "journal", kBoots[boot], most)) {
      text += std::to_string(line.time / std::chrono::seconds(1) - 1'700'000'000) + " " + line.text + "\n";
    }
    return text;
  }

  Tree tree_{{}};
  std::string entries_;
};

TEST_F(JournalTest, ReadsTheKernelsLinesOfTheBootBeforeThisOne) {
  add(0, 1, "long ago");
  add(1, 10, "first");
  add(1, 11, "of a service", "3", "syslog");
  add(1, 12, "user space wrote it", "1");
  add(1, 13, "NVRM: Xid (PCI:0000:61:00): 79, GPU has fallen off the bus.");
  add(2, 20, "this boot");
  add(2, 21, "this boot too");
  EXPECT_EQ(read(2), "10 first\n13 NVRM: Xid (PCI:0000:61:00): 79, GPU has fallen off the bus.\n");
}

TEST_F(JournalTest, TheLastLinesOfADayAreTheLimit) {
  add(1, 0, "two days ago");
  for (int i = 0; i < 10; ++i) add(1, 2 * 86'400 + i, std::to_string(i));
  add(2, 3 * 86'400, "this boot");
  EXPECT_EQ(read(2, 3), "172807 7\n172808 8\n172809 9\n");
  EXPECT_EQ(read(2).find("two days ago"), std::string::npos);
}

TEST_F(JournalTest, WithoutAnEarlierBootOrAJournalThereAreNone) {
  add(2, 1, "this boot");
  EXPECT_EQ(read(2), "");
  EXPECT_EQ(read(0), "") << "a boot that the journal does not have";
  EXPECT_TRUE(lines_of_previous_boot(tree_ / "none", kBoots[0], 10).empty());
}

}  // namespace
}  // namespace gpumeter::kernel
