#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <deque>
#include <exception>
#include <filesystem>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/command_line.hpp"
#include "base/descriptor.hpp"
#include "base/folder.hpp"
#include "base/program.hpp"
#include "base/text.hpp"
#include "programs/profiler/asking.hpp"
#include "programs/profiler/profiler.hpp"
#include "programs/profiler/search.hpp"
#include "programs/profiler/services.hpp"
#include "programs/profiler/traces.hpp"
#include "programs/service/service.hpp"

namespace gpumeter::profiles {
namespace {

/// For a process's collection of its trace. Kineto's first use of CUPTI takes seconds.
constexpr Nanoseconds kWrite = std::chrono::minutes(2);

Result<Descriptor> connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  Descriptor made(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto* const any = reinterpret_cast<const sockaddr*>(&address);
  if (made && connect(made.number(), any, sizeof address) == 0) return made;
  return Error("gpumeter-profiler cannot be asked at " + path + ": " + std::strerror(errno) +
               "; profiles.enabled must be true, and gpumeter-profiler.service must run");
}

/// What gpumeter-profiler reports, in words, and whether all went well.
class Conversation {
 public:
  /// `folder`: of the traces, as this process knows it.
  Conversation(Descriptor connection, Nanoseconds duration, std::string folder,
               std::span<const std::string> worker_sockets)
      : connection_(std::move(connection)),
        duration_(duration),
        folder_(std::move(folder)),
        worker_sockets_(worker_sockets) {}

  int run() {
    std::array<char, 4096> bytes{};
    for (ssize_t got = 1; got > 0;) {
      Descriptor attached;
      got = receive(bytes, attached);
      if (attached) attached_.push_back(std::move(attached));
      if (got > 0) text_.append(bytes.data(), static_cast<std::size_t>(got));
      take_lines();
    }
    fetches_.clear();  // waits for them
    if (is_over_) return has_failed_ ? 1 : 0;
    print_error("gpumeter-profiler ended the connection before the profile was over");
    return 1;
  }

  static void print_error(std::string_view text) {
    std::fprintf(stderr, "gpumeter: %s\n", readable(text, is_control).c_str());
  }

 private:
  void take_lines() {
    for (std::size_t end = 0; (end = text_.find('\n')) != std::string::npos;) {
      take(std::string_view(text_).substr(0, end));
      text_.erase(0, end + 1);
    }
  }

  void take(std::string_view line) {
    const std::string_view word = take_until(line, ' ');
    if (word == "refused") fail("no profile: " + std::string(line));
    if (word == "accepted") say("accepted; " + std::string(line));
    if (word == "end") is_over_ = true;
    if (word == "end" && line != "done") has_failed_ = true;
    const std::string pid(take_until(line, ' '));
    if (word == "file") files_[pid] = PathOfFile(std::string(line)).name;
    if (word == "fetch") fetch(pid, line);
    if (word == "taken") say("process " + pid + ": has the order");
    if (word == "failed") fail("process " + pid + ": " + std::string(line));
    if (word == "done") look_for(pid, std::string(line));
  }

  static void say(std::string_view text) { print(readable(text, is_control) + "\n"); }

  void fail(const std::string& text) {
    print_error(text);
    is_over_ = has_failed_ = true;
  }

  // Line by line: the program sends a connection with its own line only.
  ssize_t receive(std::array<char, 4096>& bytes, Descriptor& attached) const {
    iovec part{bytes.data(), bytes.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t got = recvmsg(connection_.number(), &message, MSG_CMSG_CLOEXEC);
    if (got <= 0) return got;
    const cmsghdr* const head = CMSG_FIRSTHDR(&message);
    if (head != nullptr && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(head), sizeof number);
      attached = Descriptor(number);
    }
    return got;
  }

  // The processes of a run answer at the same time, and PyTorch's server waits 5 s for a reader. The program
  // is not believed: it names no folder, no owner, and no socket but a worker's, because root may be here.
  void fetch(const std::string& pid, std::string_view socket) {
    const std::string_view owner = take_until(socket, ' ');
    const std::uint32_t uid = parse_number<std::uint32_t>(owner).value_or(geteuid());
    const std::string& name = files_[pid];
    if (!is_trace_name(name)) return refuse(pid, "gpumeter-profiler names no trace's file");
    if (!socket.empty() && !is_worker_socket(std::string(socket), worker_sockets_)) {
      return refuse(pid, std::string(socket) + " is none of profiles.worker_sockets");
    }
    const auto connection = std::make_shared<Descriptor>();
    if (socket.empty()) {
      if (attached_.empty()) return;
      *connection = std::move(attached_.front());
      attached_.erase(attached_.begin());
    }
    const std::string path = folder_ + "/" + name;
    fetched_[pid] = path;
    fetches_.emplace_back([this, pid, connection, uid, socket = std::string(socket), path] {
      const Result<std::uint64_t> size = fetched(*connection, socket, uid, path);
      tell(size ? "got " + pid : "lost " + pid + " " + size.error().message());
    });
  }

  void tell(const std::string& line) const {
    const std::string text = line + "\n";
    send(connection_.number(), text.data(), text.size(), MSG_NOSIGNAL);
  }

  // The program then waits no longer for the trace.
  void refuse(const std::string& pid, const std::string& why) {
    fail("process " + pid + ": " + why);
    tell("lost " + pid + " " + why);
  }

  Result<std::uint64_t> fetched(Descriptor& connection, const std::string& socket, std::uint32_t uid,
                                const std::string& path) const {
    if (!socket.empty()) {
      Result<Descriptor> made = connect_to_socket(socket, uid);
      if (!made) return made.error();
      connection = *std::move(made);
    }
    return fetch_to_file(connection, debug_request(duration_), {.path = path}, duration_ + kWrite);
  }

  // The process is free once the trace is written, but its folder may be on a network. The program counts
  // what this process sees. For a job in a container, the path is also looked up below the job's root. If the
  // number belongs to another process here, no file of that process has the trace's unpredictable name.
  void look_for(const std::string& pid, const std::string& named) {
    if (!parse_number<pid_t>(pid)) return fail("gpumeter-profiler names no process, but \"" + pid + "\"");
    const auto own = fetched_.find(pid);
    const std::string& path = own == fetched_.end() ? named : own->second;
    constexpr auto kPause = std::chrono::milliseconds(200);
    constexpr int kAttempts = 10;
    const std::string within = "/proc/" + pid + "/root" + path;
    struct stat file {};
    for (int i = 0; i < kAttempts; ++i) {
      const bool is_here = stat(path.c_str(), &file) == 0;
      if ((is_here || stat(within.c_str(), &file) == 0) && file.st_size > 0) {
        say("process " + pid + ": " + path + ", " + std::to_string(file.st_size) + " bytes");
        return tell("got " + pid);
      }
      std::this_thread::sleep_for(kPause);
    }
    fail("process " + pid + ": " + path + " is not here. In a container, look for it there. Otherwise the " +
         "process's log says why; newer versions of PyTorch write only below $KINETO_ONDEMAND_TRACE_DIR "
         "(default /tmp)");
    tell("lost " + pid + " its file is not there");
  }

  const Descriptor connection_;
  const Nanoseconds duration_;  ///< of the trace
  const std::string folder_;
  const std::span<const std::string> worker_sockets_;
  std::string text_;
  std::deque<Descriptor> attached_;             ///< in the order of their lines
  std::map<std::string, std::string> files_;    ///< names of the traces, by pid
  std::map<std::string, std::string> fetched_;  ///< paths of those that this process writes, by pid
  std::list<std::jthread> fetches_;
  bool is_over_ = false;
  bool has_failed_ = false;
};

int ask(const Asked& asked, const Settings& settings) {
  if (settings.socket.empty()) {
    Conversation::print_error("profiles.socket is empty, so no profile can be asked for");
    return 1;
  }
  Result<Descriptor> connection = connect_to(settings.socket);
  if (!connection) {
    Conversation::print_error(connection.error().message());
    return 1;
  }
  const std::string text = text_of(asked);
  send(connection->number(), text.data(), text.size(), MSG_NOSIGNAL);
  return Conversation(*std::move(connection), asked.extent.duration,
                      asked.folder.empty() ? settings.folder : asked.folder, settings.worker_sockets)
      .run();
}

constexpr std::string_view kCommand = "gpumeter profile";

std::vector<Flag> flags() {
  constexpr std::string_view kGroup = "Options";
  constexpr unsigned kMostProcesses = 1U << 22U;  // PID_MAX_LIMIT
  return {
      {"--help", "", "Print this help", kGroup},
      {"--run", "NAME", "The run, as in the label run", kGroup},
      {.name = "--pid",
       .value = "PID",
       .help = "Its process, instead of --run",
       .group = kGroup,
       .most = kMostProcesses},
      {.name = "--steps", .value = "N", .help = "Trace this many steps", .group = kGroup, .most = kMostSteps},
      {"--seconds", "S", "Trace for this time (default 5)", kGroup},
      {"--output", "DIR", "Folder of the trace (default: profiles.folder)", kGroup},
      {"--config.file", "FILE", "Configuration (default /etc/gpumeter/gpumeter.yaml)", kGroup},
  };
}

/// Returns what is wrong; empty: nothing.
std::string take(const CommandLine& line, Asked& asked) {
  asked.run = line.value("--run");
  asked.pid = parse_number<int>(line.value("--pid"));
  asked.extent.steps = parse_number<unsigned>(line.value("--steps"));
  if (asked.run.empty() != asked.pid.has_value()) return "profile requires either --run or --pid";
  if (asked.run.find('\n') != std::string::npos) return "--run must be one line";
  if (line.is_given("--steps") && line.is_given("--seconds"))
    return "--steps and --seconds cannot be combined";
  if (const std::string folder = line.value("--output"); !folder.empty())
    asked.folder = std::filesystem::absolute(folder).string();
  if (!line.is_given("--seconds")) return "";
  const double seconds = parse_number<double>(line.value("--seconds")).value_or(0);
  if (!(seconds >= 0.001 && seconds <= to_seconds(kLongestTrace))) {
    return "--seconds must be a number from 0.001 to " + std::to_string(kLongestTrace.count());
  }
  asked.extent.duration = std::chrono::duration_cast<Nanoseconds>(std::chrono::duration<double>(seconds));
  return "";
}

int ask(const CommandLine& line) {
  Asked asked;
  if (const std::string wrong = take(line, asked); !wrong.empty()) return print(usage_error(wrong, kCommand));
  const options::Section* const sections[] = {&kSection};
  const config::Schema schema{.sections = sections, .is_partial = true};
  const config::Loaded loaded = service::load_config(line.value("--config.file"), schema);
  for (const options::Problem& problem : loaded.problems)
    std::fprintf(stderr, "%s\n", to_string(problem).c_str());
  return loaded.problems.empty() ? ask(asked, loaded.config.of<Settings>()) : 2;
}

/// `gpumeter profile`: asks gpumeter-profiler for a profile and waits until it is over. Returns the exit
/// status: 0, 1 (no profile, or not all of it) or 2 (usage or configuration).
int ask_for_profile(std::span<const char* const> arguments) {
  open_closed_streams();
  try {
    const std::vector<Flag> known = flags();
    const CommandLine line(known, arguments);
    const std::optional<Exit> exit =
        early_exit(line, kCommand, "Take a profile (trace) of a running job", known);
    return exit ? print(*exit) : ask(line);
  } catch (const std::exception& problem) {
    Conversation::print_error(problem.what());
    return 1;
  }
}

}  // namespace
}  // namespace gpumeter::profiles

int main(int argc, char** argv) {
  using namespace gpumeter;
  const std::span<const char* const> arguments(argv, static_cast<std::size_t>(argc));
  if (argc > 1 && std::string_view(argv[1]) == "profile")
    return profiles::ask_for_profile(arguments.subspan(2));
  profiles::take_passed_socket();
  return service::run(
      {"gpumeter-profiler", "Takes profiles of jobs on request and by condition.", profiles::kPart}, argc,
      argv);
}
