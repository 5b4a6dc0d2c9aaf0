#include "programs/benchmark/guard/supervise.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <thread>

#include "base/descriptor.hpp"

namespace gpumeter::benchmark {
namespace {

using SteadyClock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kInterval{200};
/// A killed process that a driver keeps in the kernel is left behind after this.
constexpr milliseconds kLongestReap{5000};

/// The work's process. Its standard output belongs to the report, so what a driver prints goes to the errors.
[[noreturn]] void work_in_child(const std::function<Outcome()>& work, const Descriptor& pipe, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // the parent ended before prctl()
  signal(SIGTERM, SIG_DFL);
  signal(SIGINT, SIG_IGN);  // a terminal sends it to both; the parent decides
  dup2(STDERR_FILENO, STDOUT_FILENO);
  std::string text;
  try {
    text = to_lines(work());
  } catch (const std::exception& problem) {
    text = to_lines({{}, {problem.what()}, {}, {}});
  }
  for (std::string_view rest = text; !rest.empty();) {
    const ssize_t written = write(pipe.number(), rest.data(), rest.size());
    if (written <= 0) _exit(1);
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
  _exit(0);  // without the drivers' destructors, some of which hang
}

/// Waits for the process's end; its status, or nullopt if a driver keeps it.
std::optional<int> reap(pid_t pid) {
  const auto end = SteadyClock::now() + kLongestReap;
  int status = 0;
  while (waitpid(pid, &status, WNOHANG) == 0) {
    if (SteadyClock::now() >= end) return std::nullopt;
    std::this_thread::sleep_for(milliseconds(5));
  }
  return status;
}

/// Ends the process unless it has ended. The destructor does so too, so that none is left behind.
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid) {}
  ~Child() { kill(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void kill() {
    if (pid_ > 0) ::kill(pid_, SIGKILL);
    wait();
  }
  std::optional<int> wait() {
    const std::optional<int> status = pid_ > 0 ? reap(pid_) : std::nullopt;
    pid_ = 0;
    return status;
  }

 private:
  pid_t pid_;
};

std::string how_it_ended(std::optional<int> status) {
  if (!status) return "the driver does not return";
  if (WIFSIGNALED(*status))
    return std::string("the driver ended the process: ") + strsignal(WTERMSIG(*status));
  return "the driver ended the process with status " + std::to_string(WEXITSTATUS(*status));
}

/// Appends what is in the pipe within the interval; false at its end.
bool receive(const Descriptor& pipe, std::string& text) {
  pollfd waiting{pipe.number(), POLLIN, 0};
  if (poll(&waiting, 1, static_cast<int>(kInterval.count())) <= 0) return true;
  std::array<char, 4096> piece{};
  const ssize_t size = read(pipe.number(), piece.data(), piece.size());
  if (size > 0) text.append(piece.data(), static_cast<std::size_t>(size));
  return size > 0 || (size < 0 && errno == EINTR);
}

Supervised give_way(Child& child, std::string reason) {
  const auto begin = SteadyClock::now();
  child.kill();
  const std::chrono::duration<double> took = SteadyClock::now() - begin;
  return {End::gave_way, std::move(reason), {}, took.count()};
}

}  // namespace

Supervised supervise(const std::function<Outcome()>& work, milliseconds limit,
                     const std::function<std::optional<std::string>(int)>& other_user) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return {End::stopped, std::strerror(errno), {}, 0};
  const Descriptor receiving(ends[0]);
  Descriptor sending(ends[1]);
  const pid_t own = getpid();
  const pid_t pid = fork();
  if (pid < 0) return {End::stopped, std::strerror(errno), {}, 0};
  if (pid == 0) work_in_child(work, sending, own);
  sending = Descriptor();
  Child child(pid);
  std::string text;
  const auto end = SteadyClock::now() + limit;
  while (receive(receiving, text)) {
    if (auto reason = other_user(pid)) return give_way(child, *std::move(reason));
    if (SteadyClock::now() >= end) return {End::stopped, "it did not end in time", {}, 0};
  }
  const std::optional<int> status = child.wait();
  std::optional<Outcome> outcome = from_lines(text);
  if (!outcome) return {End::stopped, how_it_ended(status), {}, 0};
  return {End::finished, {}, *std::move(outcome), 0};
}

}  // namespace gpumeter::benchmark
