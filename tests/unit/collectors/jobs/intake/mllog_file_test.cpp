#include "collectors/jobs/intake/mllog_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/fakes/no_threads.hpp"
#include "tests/fakes/requirements.hpp"
#include "tests/fakes/tree.hpp"

namespace gpumeter::jobs {
namespace {

class MllogFileTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = no_root_folder(tree_.path()); !reason.empty()) GTEST_SKIP() << reason;
  }
  /// Returns the new lines, each followed by a bar.
  std::string read(MllogFile& file) {
    std::optional<MllogFile::Batch> batch = file.read();
    overlong_ = batch ? batch->overlong : 0;
    if (!batch) return {};
    std::ranges::replace(batch->lines, '\n', '|');
    return batch->lines;
  }
  std::string read() { return read(file_); }
  void append(const std::string& text) const {
    std::ofstream(tree_ / "log", std::ios::app | std::ios::binary) << text;
  }

  Tree tree_{{}};
  MllogFile file_{tree_ / "log", 3};
  std::uint64_t overlong_ = 0;
};

TEST_F(MllogFileTest, IsReadFromItsStartAndFollowed) {
  append("a\nb\nhalf");
  EXPECT_EQ(read(), "a|b|");
  append(" whole\n");
  EXPECT_EQ(read(), "half whole|");
  EXPECT_EQ(read(), "");
}

TEST_F(MllogFileTest, IsItsOwners) {
  EXPECT_EQ(file_.sender(), std::nullopt);
  append("");
  read();
  ASSERT_TRUE(file_.sender());
  EXPECT_EQ(file_.sender()->uid, getuid());
  EXPECT_EQ(file_.sender()->pid, -3);
}

TEST_F(MllogFileTest, MayBeMadeLaterCutReplacedAndTakenAway) {
  EXPECT_EQ(read(), "");
  EXPECT_EQ(file_.trouble(), "");
  append("first\n");
  EXPECT_EQ(read(), "first|");
  const auto first = file_.sender();
  tree_.write("log", "cut\n");
  EXPECT_EQ(read(), "cut|");
  EXPECT_EQ(file_.sender(), first);
  append("last\n");
  std::filesystem::rename(tree_ / "log", tree_ / "log.1");
  append("new\n");
  EXPECT_EQ(read(), "last|");
  EXPECT_EQ(read(), "new|");
  EXPECT_NE(file_.sender(), first);
  tree_.remove("log");
  EXPECT_EQ(read(), "");
  EXPECT_EQ(file_.sender(), std::nullopt);
  append("again\n");
  EXPECT_EQ(read(), "again|");
}

TEST_F(MllogFileTest, IsReadInParts) {
  const std::string line(1023, 'x');
  std::string text;
  for (int i = 0; i < 1500; ++i) text += line + "\n";
  append(text);
  const std::size_t first = read().size();
  EXPECT_GT(first, MllogFile::kMostAtOnce - 1024);
  EXPECT_LT(first, MllogFile::kMostAtOnce + kMaxPayload + 1024);
  EXPECT_EQ(first + read().size(), text.size());
  EXPECT_EQ(read(), "");
}

TEST_F(MllogFileTest, LosesALineThatIsTooLongAndNoOther) {
  append("a\n" + std::string(kMaxPayload + 10, 'x') + "\nb\n");
  EXPECT_EQ(read(), "a|b|");
  EXPECT_EQ(overlong_, 1U);
}

TEST_F(MllogFileTest, IsTakenForLinesWhateverBytesItHas) {
  append(std::string("a\0\0\0\nb\n", 7));
  EXPECT_EQ(read(), std::string("a\0\0\0|b|", 7));
}

TEST_F(MllogFileTest, IsNoLinkAndLiesBehindNone) {
  append("secret\n");
  tree_.write("link", "-> log");
  MllogFile link(tree_ / "link", 1);
  EXPECT_EQ(read(link), "");
  EXPECT_EQ(link.trouble(), "its path contains a link; name the file itself");
  std::filesystem::create_directory(tree_ / "real");
  std::filesystem::copy(tree_ / "log", tree_ / "real/log");
  tree_.write("folder", "-> real");
  MllogFile behind(tree_ / "folder/log", 1);
  EXPECT_EQ(read(behind), "");
  EXPECT_EQ(behind.trouble(), "its path contains a link; name the file itself");
  MllogFile direct(tree_ / "real/log", 1);
  EXPECT_EQ(read(direct), "secret|");
}

TEST_F(MllogFileTest, IsNoDeviceAndNoFolder) {
  MllogFile device("/dev/zero", 1);
  EXPECT_EQ(read(device), "");
  EXPECT_EQ(device.trouble(), "it is neither a file nor a pipe");
  MllogFile folder(tree_.path(), 1);
  EXPECT_EQ(read(folder), "");
  EXPECT_EQ(folder.trouble(), "it is neither a file nor a pipe");
}

TEST_F(MllogFileTest, MayBeAPipe) {
  ASSERT_EQ(mkfifo((tree_ / "log").c_str(), 0600), 0);
  EXPECT_EQ(read(), "");  // and does not wait for a writer
  for (const std::string_view text : {"one\n", "two\n"}) {
    const Descriptor writer(open((tree_ / "log").c_str(), O_WRONLY | O_NONBLOCK));
    ASSERT_EQ(write(writer.number(), text.data(), text.size()), 4);
    EXPECT_EQ(read(), std::string(text.substr(0, 3)) + "|");
  }
}

using namespace std::chrono_literals;

class MllogReaderTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto reason = no_root_folder(tree_.path()); !reason.empty()) GTEST_SKIP() << reason;
  }
  ~MllogReaderTest() override {
    reader_.request_stop();
    EXPECT_TRUE(reader_.join(SystemClock().monotonic() + 5s));
  }
  MllogFile::Batch next() {
    while (true) {
      if (auto batch = reader_.take()) return *std::move(batch);
      std::this_thread::sleep_for(2ms);
    }
  }

  Tree tree_{{}};
  MllogReader reader_{{"bert", tree_ / "log"}, 2};
};

TEST_F(MllogReaderTest, HandsOverWholeLinesWithTheirOwner) {
  tree_.write("log", "a\nb\nhalf");
  ASSERT_TRUE(reader_.start());
  const MllogFile::Batch batch = next();
  EXPECT_EQ(batch.lines, "a\nb\n");
  EXPECT_EQ(batch.sender.uid, getuid());
  EXPECT_EQ(batch.sender.pid, -2);
  EXPECT_EQ(reader_.sender(), batch.sender);
}

// Lines that are not taken do not pile up: the rest stays in the file.
TEST_F(MllogReaderTest, ReadsNoMoreBeforeWhatItReadIsTaken) {
  std::string text;
  while (text.size() < 3 * MllogFile::kMostAtOnce) text += std::string(1023, 'x') + "\n";
  tree_.write("log", text);
  ASSERT_TRUE(reader_.start());
  std::this_thread::sleep_for(2500ms);  // two and a half reads
  std::size_t taken = next().lines.size();
  EXPECT_LT(taken, MllogFile::kMostAtOnce + kMaxPayload + 1024);
  while (taken < text.size()) taken += next().lines.size();
  EXPECT_EQ(taken, text.size());
}

TEST_F(MllogReaderTest, GetsItsThreadOnceThereIsOne) {
  tree_.write("log", "a\n");
  {
    const NoThreads none;
    EXPECT_FALSE(reader_.start());
  }
  ASSERT_TRUE(reader_.start());
  EXPECT_EQ(next().lines, "a\n");
}

}  // namespace

}  // namespace gpumeter::jobs
