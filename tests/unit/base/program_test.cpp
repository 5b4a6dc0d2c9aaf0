#include "base/program.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <string>

namespace gpumeter {
namespace {

using std::chrono::milliseconds;

TEST(Signals, AreTakenOneByOneInsteadOfHandled) {
  auto signals = Signals::block();
  ASSERT_TRUE(signals);
  for (const int sent : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2}) {
    ASSERT_EQ(kill(getpid(), sent), 0);
    EXPECT_EQ(signals->wait(milliseconds(1000)), sent);
  }
  EXPECT_EQ(signals->wait(milliseconds(0)), std::nullopt);
}

TEST(Signals, AreWaitedForBesideAnotherDescriptor) {
  auto signals = Signals::block();
  ASSERT_TRUE(signals);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(write(ends[1], "x", 1), 1);
  EXPECT_EQ(signals->wait(std::chrono::hours(1), ends[0]), std::nullopt);  // returns at once
  ASSERT_EQ(kill(getpid(), SIGHUP), 0);
  EXPECT_EQ(signals->wait(std::chrono::hours(1), ends[0]), SIGHUP);
  close(ends[0]);
  close(ends[1]);
}

TEST(Signals, LeaveABrokenPipeToTheWriter) {
  const auto signals = Signals::block();
  ASSERT_TRUE(signals);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  EXPECT_EQ(write(ends[1], "x", 1), -1);
  EXPECT_EQ(errno, EPIPE);
  close(ends[1]);
}

TEST(Signals, RestoreTheMaskAtTheEnd) {
  sigset_t mask;
  { const auto signals = Signals::block(); }
  ASSERT_EQ(pthread_sigmask(SIG_SETMASK, nullptr, &mask), 0);
  EXPECT_EQ(sigismember(&mask, SIGTERM), 0);
}

}  // namespace
namespace {

/// Resident pages of files (statm's third field, proc(5)).
long mapped_pages() {
  std::ifstream file("/proc/self/statm");
  long size = 0, resident = 0, shared = 0;
  file >> size >> resident >> shared;
  return shared;
}

/// A relocated table: its pointers are in a segment that the dynamic linker wrote.
const char* const kWords[] = {"one", "two"};

TEST(UnmapCode, TheProgramGoesOnWithLessMemory) {
  const long before = mapped_pages();
  unmap_code();
  EXPECT_LT(mapped_pages(), before);
  const char* const* volatile words = kWords;
  EXPECT_EQ(std::string(words[1]), "two");
}

}  // namespace
}  // namespace gpumeter
