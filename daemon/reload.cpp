#include "daemon/reload.hpp"

#include <signal.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>

#include "base/folder.hpp"
#include "base/text.hpp"

namespace gpumeter {
namespace {

constexpr auto kBetweenLooks = std::chrono::milliseconds(20);

constexpr const char* kName = "reload";

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

Result<Done> write_outcome(const std::string& folder, const ReloadOutcome& outcome) {
  constexpr mode_t kOwnAndGroup = 0640;
  const Result<Folder> runtime = Folder::open(folder);
  if (!runtime) return runtime.error();
  return runtime->replace(kName, text_of(outcome), kOwnAndGroup, Folder::Outlives::crash);
}

std::optional<ReloadOutcome> read_outcome(const std::string& folder) {
  constexpr std::size_t kMost = 1U << 20U;
  const Result<Folder> runtime = Folder::open(folder);
  const Result<std::string> text = runtime ? runtime->read(kName, kMost) : Result<std::string>(std::string());
  if (!text) return std::nullopt;
  std::string_view lines = *text;
  std::string_view first = take_until(lines, '\n');
  const auto daemon = parse_number<pid_t>(take_until(first, ' '));
  const auto begun = parse_number<Nanoseconds::rep>(first);
  if (!daemon || !begun) return std::nullopt;
  ReloadOutcome outcome{*daemon, Nanoseconds(*begun), {}};
  while (!lines.empty()) outcome.problems.push_back(readable(take_until(lines, '\n'), is_control));
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
  return Error(name + " received SIGHUP, but left no outcome in " + folder + "/" + kName + "; see its log");
}

}  // namespace gpumeter
