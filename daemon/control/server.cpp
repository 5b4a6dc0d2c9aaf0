#include "daemon/control/server.hpp"

#include <grp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

#include "base/bounded_calls.hpp"
#include "base/folder.hpp"
#include "base/socket_file.hpp"
#include "base/text.hpp"
#include "daemon/fleet/device_directory.hpp"
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

Error with_advice(const Error& error) {
  return geteuid() == 0 ? error : Error(error.message() + "; run it as root");
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

Result<Descriptor> connect_to(const std::string& folder) {
  Result<sockaddr_un> address = control::address_in(folder);
  if (!address) return address.error();
  Result<Descriptor> opened = control::open_socket();
  if (!opened) return opened;
  control::limit_time(*opened);
  const auto* const any = reinterpret_cast<const sockaddr*>(&*address);
  if (connect(opened->number(), any, sizeof *address) == 0) return opened;
  const int error = errno;
  return Error("another process uses " + folder + ", and it cannot be asked: " + address->sun_path + ": " +
               std::strerror(error) + (error == EACCES ? "; run it as root" : ""));
}

Result<Done> ask_daemon(const std::string& folder, const std::string& uuid) {
  const Result<Descriptor> connection = connect_to(folder);
  if (!connection) return connection.error();
  if (Result<Done> sent = control::write_line(*connection, std::string(control::kForget) + uuid); !sent) {
    return sent.error().with("the daemon");
  }
  const Result<std::string> answer = control::read_line(*connection);
  if (!answer) return answer.error().with("the daemon");
  if (*answer == control::kOk) return Done{};
  return Error(readable(
      answer->starts_with(control::kError) ? answer->substr(control::kError.size()) : *answer, is_control));
}

std::string known_devices(const DeviceDirectory& directory) {
  std::string text;
  for (const auto& [uuid, device] : directory.devices()) text += (text.empty() ? "" : ", ") + uuid;
  return text.empty() ? "none" : text;
}

Result<Done> edit_file(const std::string& folder, const std::string& uuid) {
  DeviceDirectory directory(folder);
  if (Result<Done> loaded = directory.load(); !loaded) return loaded;
  if (!directory.forget(uuid)) {
    return Error(uuid + " is not a known device; known are " + known_devices(directory));
  }
  return directory.save();
}

/// Root has no business of its own in the folder: whatever its owner put there then does no more than the
/// owner may.
Result<Done> become_owner_of(const std::string& path) {
  const Result<Folder> folder = Folder::open(path);
  if (!folder) return control::with_advice(folder.error());
  const uid_t owner = folder->owner();
  const gid_t group = folder->group();
  if (geteuid() != 0 || owner == 0) return Done{};
  const bool is_done =
      setgroups(1, &group) == 0 && setresgid(group, group, group) == 0 && setresuid(owner, owner, owner) == 0;
  if (!is_done) return Error(path + ": cannot become its owner: " + std::strerror(errno));
  return Done{};
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

Result<Done> forget_device(const std::string& folder, const std::string& uuid) {
  if (uuid.find_first_of("\n\r") != std::string::npos) return Error("a uuid is one line");
  if (Result<Done> done = become_owner_of(folder); !done) return done;
  const Result<FolderLock> lock = FolderLock::take(folder);
  if (!lock) return control::with_advice(lock.error());
  return lock->is_ours() ? edit_file(folder, uuid) : ask_daemon(folder, uuid);
}

// The call answers with the text of its Error, which is empty if the device is forgotten.
Result<Done> forget_device_in_time(const std::string& folder, const std::string& uuid, const Clock& clock) {
  BoundedCalls calls("forget", kForgetPatience, clock);
  const auto answers = calls.ask<std::string>({uuid}, [folder](const std::string& each) {
    const Result<Done> done = forget_device(folder, each);
    return done ? std::string() : done.error().message();
  });
  if (!answers.has_asked) return Error("the system has no thread left");
  const auto answer = answers.values.find(uuid);
  if (answer == answers.values.end()) {
    return Error(folder + " has not answered for " + std::to_string(kForgetPatience.count()) +
                 " s; its file system hangs. Try again when it answers");
  }
  return answer->second.empty() ? Result<Done>(Done{}) : Error(answer->second);
}

}  // namespace gpumeter
