#include "collectors/jobs/intake/mllog_reader.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "tests/fakes/no_threads.hpp"
#include "tests/fakes/requirements.hpp"
#include "tests/fakes/tree.hpp"

namespace gpumeter::jobs {
namespace {

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
