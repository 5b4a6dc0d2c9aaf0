#include "daemon/profiles/ask.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>

#include "base/descriptor.hpp"
#include "base/text.hpp"
#include "daemon/cli/standard_streams.hpp"

namespace gpumeter {
namespace {

Result<Descriptor> connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  Descriptor made(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto* const any = reinterpret_cast<const sockaddr*>(&address);
  if (made && connect(made.number(), any, sizeof address) == 0) return made;
  return Error("the daemon cannot be asked at " + path + ": " + std::strerror(errno) +
               "; profiles.enabled must be true, and the daemon must run");
}

/// What the daemon reports, in words, and whether all went well.
class Conversation {
 public:
  explicit Conversation(Descriptor connection) : connection_(std::move(connection)) {}

  int run() {
    std::array<char, 4096> bytes{};
    for (ssize_t got = 1; got > 0;) {
      got = recv(connection_.number(), bytes.data(), bytes.size(), 0);
      if (got > 0) text_.append(bytes.data(), static_cast<std::size_t>(got));
      take_lines();
    }
    if (is_over_) return has_failed_ ? 1 : 0;
    print_error("the daemon ended the connection before the profile was over");
    return 1;
  }

  static void print_error(const std::string& text) { std::fprintf(stderr, "gpumeter: %s\n", text.c_str()); }

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
    if (word == "accepted") print("accepted; " + std::string(line) + "\n");
    if (word == "end") is_over_ = true;
    if (word == "end" && line != "done") has_failed_ = true;
    const std::string pid(take_until(line, ' '));
    if (word == "taken") print("process " + pid + ": has the order\n");
    if (word == "failed") fail("process " + pid + ": " + std::string(line));
    if (word == "done") look_for(pid, std::string(line));
  }

  void fail(const std::string& text) {
    print_error(text);
    is_over_ = has_failed_ = true;
  }

  // The process is free once the trace is written, but its folder may be on a network. A container's folder
  // is not visible here.
  void look_for(const std::string& pid, const std::string& path) {
    constexpr auto kPause = std::chrono::milliseconds(200);
    constexpr int kAttempts = 10;
    struct stat file {};
    for (int i = 0; i < kAttempts; ++i) {
      if (stat(path.c_str(), &file) == 0 && file.st_size > 0) {
        print("process " + pid + ": " + path + ", " + std::to_string(file.st_size) + " bytes\n");
        return;
      }
      std::this_thread::sleep_for(kPause);
    }
    fail("process " + pid + ": " + path + " is not here. In a container, look for it there. Otherwise the " +
         "process's log says why; newer versions of PyTorch write only below $KINETO_ONDEMAND_TRACE_DIR "
         "(default /tmp)");
  }

  const Descriptor connection_;
  std::string text_;
  bool is_over_ = false;
  bool has_failed_ = false;
};

}  // namespace

int ask_for_profile(const profiles::Asked& asked, const std::string& socket) {
  if (socket.empty()) {
    Conversation::print_error("profiles.socket is empty, so no profile can be asked for");
    return 1;
  }
  Result<Descriptor> connection = connect_to(socket);
  if (!connection) {
    Conversation::print_error(connection.error().message());
    return 1;
  }
  const std::string text = profiles::text_of(asked);
  send(connection->number(), text.data(), text.size(), MSG_NOSIGNAL);
  return Conversation(*std::move(connection)).run();
}

}  // namespace gpumeter
