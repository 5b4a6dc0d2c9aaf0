/// A write of the figures is killed at each of its system calls. The file is then the old one or the new one.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <optional>

#include "daemon/state/figures_file.hpp"

namespace gpumeter {
namespace {

constexpr const char* kName = "figures.state";

std::string text_of(const std::string& figures) {
  return encode({"0123", "boot", std::chrono::seconds(1), {{"devices", figures}}});
}

/// Starts a process that writes `text` and is stopped before its first system call; nullopt: not permitted.
std::optional<pid_t> start_writer(const std::string& folder, const std::string& text) {
  const pid_t writer = fork();
  if (writer == 0) {
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(3);
    raise(SIGSTOP);
    _exit(replace_state_file(folder, kName, text) ? 0 : 1);
  }
  int status = 0;
  waitpid(writer, &status, 0);
  return WIFSTOPPED(status) ? std::optional(writer) : std::nullopt;
}

/// Kills the writer at its `number`th stop, of which each system call has two: before and after it. Returns
/// true if it ended by itself before.
bool kill_at(pid_t writer, int number) {
  int status = 0;
  for (int stop = 0; stop < number; ++stop) {
    ptrace(PTRACE_SYSCALL, writer, nullptr, nullptr);
    waitpid(writer, &status, 0);
    if (WIFEXITED(status)) return true;
  }
  kill(writer, SIGKILL);
  waitpid(writer, &status, 0);
  return false;
}

TEST(PowerCut, AtEachSystemCallLeavesTheOldFileOrTheNewOne) {
  const std::string folder = testing::TempDir() + "/power-cut-" + std::to_string(getpid());
  std::filesystem::remove_all(folder);
  const std::string old_text = text_of("counter\ta\t1\n");
  const std::string new_text = text_of("counter\ta\t2\n");
  int cuts = 0, old_files = 0, new_files = 0;
  for (bool has_ended = false; !has_ended && cuts < 1000; ++cuts) {
    ASSERT_TRUE(replace_state_file(folder, kName, old_text));
    const std::optional<pid_t> writer = start_writer(folder, new_text);
    if (!writer) GTEST_SKIP() << "this machine does not permit ptrace";
    has_ended = kill_at(*writer, cuts);
    const Result<std::string> found = read_state_file(folder + "/" + kName, 4096);
    ASSERT_TRUE(found) << "cut " << cuts;
    ASSERT_TRUE(decode(*found)) << "cut " << cuts;
    ASSERT_TRUE(*found == old_text || *found == new_text) << "cut " << cuts;
    ++(*found == old_text ? old_files : new_files);
  }
  EXPECT_GE(old_files, 8) << "open, write, fsync, rename: each before and after";
  EXPECT_GE(new_files, 2) << "after the rename";
  RecordProperty("cuts", cuts);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace gpumeter
