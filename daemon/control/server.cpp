#include "daemon/control/server.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/folder.hpp"
#include "daemon/state/figures_file.hpp"

namespace gpumeter::control {
namespace {

Error failed(const std::string& what) { return Error(what + ": " + std::strerror(errno)); }

}  // namespace

std::string path_in(const std::string& folder) { return folder + "/control.sock"; }

Result<sockaddr_un> address_in(const std::string& folder) {
  const std::string path = path_in(folder);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return Error(path + ": is too long for a socket");
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

Result<Descriptor> open_socket() {
  Descriptor opened(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!opened) return failed("socket");
  return opened;
}

void limit_time(const Descriptor& connection) noexcept {
  const timeval limit{kPatience.count(), 0};
  setsockopt(connection.number(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  setsockopt(connection.number(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

Result<std::string> read_line(const Descriptor& connection) {
  std::string line;
  char byte = 0;
  while (line.size() < kMostBytes) {
    const ssize_t got = recv(connection.number(), &byte, 1, 0);
    if (got < 0) return failed("no answer");
    if (got == 0) return Error("the connection ended without an answer");
    if (byte == '\n') return line;
    line += byte;
  }
  return Error("a line is too long");
}

Result<Done> write_line(const Descriptor& connection, const std::string& line) {
  const std::string text = line + "\n";
  const ssize_t sent = send(connection.number(), text.data(), text.size(), MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(text.size())) return failed("cannot be sent");
  return Done{};
}

}  // namespace gpumeter::control

namespace gpumeter {
namespace {

// The folder may appear later, or its disk may be full.
constexpr auto kNextAttempt = std::chrono::seconds(30);
/// After an accept() that failed, for lack of a descriptor: the socket stays readable.
constexpr auto kAcceptAgain = std::chrono::milliseconds(250);

bool is_administrator(const Descriptor& connection) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(connection.number(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return false;
  return peer.uid == 0 || peer.uid == geteuid();
}

struct Listening {
  Descriptor socket;
  SocketFile file;
};

// The socket of an earlier run is replaced, that of a running daemon is not.
Result<Listening> listen_in(const std::string& folder) {
  constexpr mode_t kOwnOnly = 0600;
  constexpr int kBacklog = 4;
  if (const Result<Folder> made = Folder::make(folder, kStateFolderMode); !made) return made.error();
  Result<Descriptor> opened = control::open_socket();
  if (!opened) return opened.error();
  const std::string path = control::path_in(folder);
  Result<SocketFile> file = SocketFile::bind(*opened, path, kOwnOnly);
  if (!file) return file.error().with(path);
  if (listen(opened->number(), kBacklog) != 0) return Error(path + ": " + std::strerror(errno));
  return Listening{*std::move(opened), *std::move(file)};
}

}  // namespace

/// wake(): any thread. Everything else: the thread "control".
class ControlServer::Listener {
 public:
  Listener(std::string folder, Log& log, Forget forget)
      : folder_(std::move(folder)), log_(log), forget_(std::move(forget)), woken_(eventfd(0, EFD_CLOEXEC)) {}

  Nanoseconds turn();
  void wake() const noexcept {
    const std::uint64_t one = 1;
    [[maybe_unused]] const ssize_t ignored = write(woken_.number(), &one, sizeof one);
  }

 private:
  bool is_open();
  void serve(const Descriptor& connection);
  std::string answer(std::string_view request);

  const std::string folder_;
  Log& log_;
  const Forget forget_;
  const Descriptor woken_;
  Listening listening_;
  bool failed_ = false;
};

Nanoseconds ControlServer::Listener::turn() {
  if (!is_open()) return kNextAttempt;
  std::array<pollfd, 2> ready = {{{listening_.socket.number(), POLLIN, 0}, {woken_.number(), POLLIN, 0}}};
  poll(ready.data(), ready.size(), -1);
  if (ready[1].revents != 0) return Worker::kForever;
  const Descriptor connection(accept4(listening_.socket.number(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!connection) return kAcceptAgain;
  if (is_administrator(connection)) serve(connection);
  return Nanoseconds(0);
}

bool ControlServer::Listener::is_open() {
  if (listening_.socket) return true;
  Result<Listening> opened = listen_in(folder_);
  if (opened) {
    listening_ = *std::move(opened);
  } else if (!std::exchange(failed_, true)) {
    log_.info("gpumeter forget cannot reach this daemon", {{"error", opened.error().message()}});
  }
  return static_cast<bool>(listening_.socket);
}

void ControlServer::Listener::serve(const Descriptor& connection) {
  control::limit_time(connection);
  const Result<std::string> request = control::read_line(connection);
  if (!request) return;
  [[maybe_unused]] const Result<Done> ignored = control::write_line(connection, answer(*request));
}

std::string ControlServer::Listener::answer(std::string_view request) {
  if (!request.starts_with(control::kForget)) return std::string(control::kError) + "unknown request";
  request.remove_prefix(control::kForget.size());
  const Result<Done> done = forget_(std::string(request));
  return done ? std::string(control::kOk) : std::string(control::kError) + done.error().message();
}

ControlServer::ControlServer(std::string folder, const Clock& clock, Log& log, Forget forget)
    : listener_(std::make_shared<Listener>(std::move(folder), log, std::move(forget))), worker_(clock) {}

ControlServer::~ControlServer() {
  worker_.request_stop();
  listener_->wake();
}

Result<Done> ControlServer::start() {
  return worker_.start("control", [listener = listener_] { return listener->turn(); });
}

bool ControlServer::stop(Nanoseconds deadline) {
  worker_.request_stop();
  listener_->wake();
  return worker_.join(deadline);
}

}  // namespace gpumeter
