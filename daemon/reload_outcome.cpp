#include "daemon/reload_outcome.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string_view>
#include <thread>
#include <utility>

#include "base/descriptor.hpp"

namespace gpumeter {
namespace {

constexpr auto kBetweenLooks = std::chrono::milliseconds(20);

std::string path_in(const std::string& folder) { return folder + "/reload"; }

Error failed(const std::string& what) { return Error(what + ": " + std::strerror(errno)); }

/// The first line has the process id and the start time. One line for each problem follows.
std::string text_of(const ReloadOutcome& outcome) {
  std::string text = std::to_string(outcome.daemon) + " " + std::to_string(outcome.begun.count()) + "\n";
  for (const std::string& problem : outcome.problems) text += problem + "\n";
  return text;
}

}  // namespace

std::string own_runtime_folder() {
  const char* given = std::getenv("RUNTIME_DIRECTORY");
  const std::string_view folders = given == nullptr ? "" : given;
  return std::string(folders.substr(0, folders.find(':')));
}

std::string runtime_folder() {
  std::string own = own_runtime_folder();
  return own.empty() ? "/run/gpumeter" : own;
}

// O_NONBLOCK: opening a FIFO of that name fails instead of waiting.
Result<Done> write_outcome(const std::string& folder, const ReloadOutcome& outcome) {
  const std::string path = path_in(folder);
  const std::string fresh = path + ".new";
  const Descriptor file(
      open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0640));
  if (!file) return failed(fresh);
  const std::string text = text_of(outcome);
  if (write(file.number(), text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    return failed(fresh);
  if (rename(fresh.c_str(), path.c_str()) != 0) return failed(path);
  return Done{};
}

std::optional<ReloadOutcome> read_outcome(const std::string& folder) {
  std::ifstream file(path_in(folder));
  ReloadOutcome outcome;
  Nanoseconds::rep begun = 0;
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  if (!(std::istringstream(line) >> outcome.daemon >> begun)) return std::nullopt;
  outcome.begun = Nanoseconds(begun);
  while (std::getline(file, line)) outcome.problems.push_back(line);
  return outcome;
}

Result<ReloadOutcome> request_reload(pid_t daemon, const std::string& folder, const Clock& clock,
                                     Nanoseconds patience) {
  const Nanoseconds asked = clock.monotonic();
  const std::string name = "process " + std::to_string(daemon);
  if (kill(daemon, SIGHUP) != 0) return failed(name + " cannot receive SIGHUP");
  while (clock.monotonic() < asked + patience) {
    std::optional<ReloadOutcome> outcome = read_outcome(folder);
    if (outcome && outcome->daemon == daemon && outcome->begun >= asked) return *std::move(outcome);
    if (kill(daemon, 0) != 0) return failed(name + " ended before the reload was complete");
    std::this_thread::sleep_for(kBetweenLooks);
  }
  return Error(name + " received SIGHUP, but left no outcome in " + path_in(folder) + "; see its log");
}

}  // namespace gpumeter
