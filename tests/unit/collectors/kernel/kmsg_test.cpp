#include "collectors/kernel/kmsg.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "base/descriptor.hpp"
#include "tests/fakes/tree.hpp"

// Records of /dev/kmsg: their parts, their order, and those that are missing.

namespace gpumeter::kernel {
namespace {

TEST(Kmsg, ReadsTheHeadAndTheKeys) {
  const auto record = parse_record(
      "4,1034,5140900,-,caller=T12;amdgpu 0000:03:00.0: ring gfx timeout\n SUBSYSTEM=pci\n "
      "DEVICE=+pci:0000:03:00.0\n");
  ASSERT_TRUE(record);
  EXPECT_TRUE(record->is_of_kernel());
  EXPECT_EQ(record->sequence, 1034U);
  EXPECT_EQ(record->since_boot, std::chrono::microseconds(5140900));
  EXPECT_EQ(record->text, "amdgpu 0000:03:00.0: ring gfx timeout");
  EXPECT_EQ(record->pci_address, "0000:03:00.0");
}

TEST(Kmsg, UnescapesBytesAndKeepsWhatIsNoEscape) {
  EXPECT_EQ(parse_record(R"(6,1,1,-;a\x0ab \x5c \xe4 \x4 \xzz end\x)")->text,
            "a\nb \\ \xe4 \\x4 \\xzz end\\x");
}

TEST(Kmsg, UserSpaceHasAnotherFacility) {
  EXPECT_FALSE(parse_record("12,1,1,-;NVRM: Xid (PCI:0000:01:00): 79, fake")->is_of_kernel());
  EXPECT_TRUE(parse_record("7,1,1,c;real")->is_of_kernel());
}

TEST(Kmsg, OtherTextsAreNoRecords) {
  for (const char* text : {"", ";", "4,1,1", "x,1,1,-;a", "4,,1,-;a", "4,1,-1,-;a",
                           "4,1,9223372036854775807,-;a", " KEY=value", "4,18446744073709551616,1,-;a"}) {
    EXPECT_FALSE(parse_record(text)) << text;
  }
}

class KernelLogTest : public testing::Test {
 protected:
  /// The texts of all records that are there now.
  static std::string texts(KernelLog& log) {
    std::string text;
    while (const auto record = log.next()) text += record->text + "|";
    return text;
  }
  Tree tree_{{}};
};

TEST_F(KernelLogTest, CountsRecordsThatWereOverwritten) {
  tree_.write("kmsg", "4,5,1,-;a\n4,6,1,-;b\n4,9,1,-;c\nnonsense\n4,10,1,-;d\n");
  auto log = KernelLog::open(tree_ / "kmsg");
  ASSERT_TRUE(log);
  EXPECT_EQ(texts(*log), "a|b|c|d|");
  EXPECT_EQ(log->lost(), 2U);
}

TEST_F(KernelLogTest, CountsThoseSinceTheLastOneOfAnEarlierProcess) {
  tree_.write("kmsg", "4,5,1,-;a\n4,6,1,-;b\n");
  for (const auto& [last, lost] : {std::pair(1U, 3U), std::pair(4U, 0U), std::pair(6U, 0U)}) {
    auto log = KernelLog::open(tree_ / "kmsg");
    log->expect_after(last);
    EXPECT_EQ(texts(*log), "a|b|");
    EXPECT_EQ(log->lost(), lost) << last;
  }
}

TEST_F(KernelLogTest, APipeMayEndWithinARecord) {
  ASSERT_EQ(mkfifo((tree_ / "pipe").c_str(), 0600), 0);
  auto log = KernelLog::open(tree_ / "pipe");
  ASSERT_TRUE(log);
  EXPECT_EQ(texts(*log), "");
  const Descriptor writer(open((tree_ / "pipe").c_str(), O_WRONLY));
  const auto write = [&](std::string_view text) {
    ASSERT_EQ(::write(writer.number(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  };
  write("4,1,1,-;whole\n4,2,1,-;ha");
  EXPECT_EQ(texts(*log), "whole|");
  write("lf\n KEY=value\n");
  EXPECT_EQ(texts(*log), "half|");
  write(std::string(60'000, 'x'));
  EXPECT_EQ(texts(*log), "");
  write("\n4,3,1,-;goes on\n");
  EXPECT_EQ(texts(*log), "goes on|");
  EXPECT_EQ(log->lost(), 0U);
}

TEST_F(KernelLogTest, AMissingFileIsAnError) {
  const auto log = KernelLog::open(tree_ / "none");
  ASSERT_FALSE(log);
  EXPECT_EQ(log.error().message(), tree_ / "none" + ": No such file or directory");
}

// Any user may write into the real log, but not as the kernel.
TEST_F(KernelLogTest, TheRealLogHasWhatUserSpaceWrites) {
  const Descriptor writer(open("/dev/kmsg", O_WRONLY));
  auto log = KernelLog::open("/dev/kmsg");
  if (!writer || !log) GTEST_SKIP() << "/dev/kmsg cannot be opened";
  const std::string line = "gpumeter's test " + std::to_string(getpid());
  const std::string whole = line + "\n";  // the kernel waits for the rest of a line without an end
  if (write(writer.number(), whole.data(), whole.size()) < 0) GTEST_SKIP() << "/dev/kmsg cannot be written";
  bool is_found = false;
  while (const auto record = log->next()) is_found |= record->text == line && !record->is_of_kernel();
  EXPECT_TRUE(is_found);
}

}  // namespace
}  // namespace gpumeter::kernel
