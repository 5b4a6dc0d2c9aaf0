#include "systemd/journal.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace gpumeter::systemd {
namespace {

class JournalStream : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(pipe(ends_), 0); }
  void TearDown() override {
    for (const int fd : ends_) close(fd);
  }

  std::string device_and_inode() const {
    struct stat status {};
    fstat(ends_[0], &status);
    return std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino);
  }

  int ends_[2] = {-1, -1};
};

TEST_F(JournalStream, IsToldByDeviceAndInode) {
  const std::string stream = device_and_inode();
  EXPECT_TRUE(is_journal_stream(ends_[0], stream.c_str()));
  EXPECT_FALSE(is_journal_stream(ends_[0], (stream + "0").c_str()));
  EXPECT_FALSE(is_journal_stream(STDERR_FILENO, stream.c_str()));
  EXPECT_FALSE(is_journal_stream(-1, stream.c_str()));
}

TEST_F(JournalStream, IsNotToldByAnythingElse) {
  const std::string stream = device_and_inode();
  EXPECT_FALSE(is_journal_stream(ends_[0], nullptr));
  for (const std::string& text :
       {std::string(), std::string(":"), std::string("x"), stream + " ", " " + stream,
        stream.substr(0, stream.find(':')), stream.substr(0, stream.find(':') + 1)}) {
    EXPECT_FALSE(is_journal_stream(ends_[0], text.c_str())) << text;
  }
}

}  // namespace
}  // namespace gpumeter::systemd
