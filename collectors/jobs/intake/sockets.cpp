#include "collectors/jobs/intake/sockets.hpp"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <optional>
#include <system_error>
#include <utility>

#include "base/clock.hpp"
#include "base/worker.hpp"
#include "collectors/sources/sysfs.hpp"

namespace gpumeter::jobs {
namespace {

/// Connections that wait to be accepted: enough for all processes of a large job at the same moment.
constexpr int kBacklog = 128;

Error last_error(const std::string& what) {
  return Error(what + ": " + std::generic_category().message(errno));
}

/// A socket has the queue length of the network namespace that it is created in, at that moment. The creating
/// thread therefore enters a new namespace, whose length it may set, and ends. The path is not part of any
/// network namespace. Needs CAP_SYS_ADMIN and a writable /proc/sys; invalid without.
Descriptor socket_with_long_queue() {
  Descriptor made;
  const SystemClock clock;
  Worker worker(clock);
  const auto create = [&]() -> std::optional<Nanoseconds> {
    if (unshare(CLONE_NEWNET) != 0) return std::nullopt;
    const Descriptor limit(open("/proc/sys/net/unix/max_dgram_qlen", O_WRONLY | O_CLOEXEC));
    const std::string length = std::to_string(kQueueLength);
    if (!limit || write(limit.number(), length.data(), length.size()) < 0) return std::nullopt;
    made = Descriptor(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    return std::nullopt;
  };
  if (worker.start("jobs-socket", create)) worker.join();
  return made;
}

/// Names first the folder that the daemon needs, then what the administrator can do.
std::string advice(const std::string& path) {
  return "; enable gpumeter-jobs.socket, or give the daemon the folder " + PathOfFile(path).folder +
         "/, or name another path in jobs.socket and jobs.stream_socket";
}

/// Makes the kernel add the time and the credentials to each message. The queue is limited in messages, and
/// by the send buffers of the senders: SO_RCVBUF has no effect on Unix sockets.
Result<Done> prepare(int descriptor, int type) {
  constexpr int kOn = 1;
  if (fcntl(descriptor, F_SETFL, O_NONBLOCK) != 0) return last_error("O_NONBLOCK");
  if (type == SOCK_STREAM) return Done{};
  if (setsockopt(descriptor, SOL_SOCKET, SO_PASSCRED, &kOn, sizeof kOn) != 0)
    return last_error("SO_PASSCRED");
  if (setsockopt(descriptor, SOL_SOCKET, SO_TIMESTAMPNS, &kOn, sizeof kOn) != 0)
    return last_error("SO_TIMESTAMPNS");
  return Done{};
}

void take_passed(std::vector<PassedSocket>& passed, JobSockets& sockets, const Say& say) {
  for (auto& [socket, name, type] : passed) {
    BoundSocket& place = type == SOCK_STREAM ? sockets.stream : sockets.datagram;
    if (type == 0 || place) {
      say({"ignoring a socket of systemd: jobs need one Unix datagram socket and one Unix stream socket",
           name});
    } else if (const auto done = prepare(socket.number(), type); !done) {
      say({"cannot use a socket of systemd", name, done.error().message()});
    } else {
      place = BoundSocket(std::move(socket));
    }
  }
}

BoundSocket open_one(const std::string& path, int type, mode_t mode, const Say& say) {
  if (path.empty()) return {};
  Result<BoundSocket> opened = BoundSocket::open(path, type, mode);
  if (!opened) {
    say({"cannot listen for jobs here", path, opened.error().message() + advice(path)});
    return {};
  }
  say({"listening for jobs", path});
  return *std::move(opened);
}

}  // namespace

// The last folder is created as RuntimeDirectory= of systemd does, because a daemon started by hand finds no
// /run/gpumeter. If this fails, the bind reports it.
Result<BoundSocket> BoundSocket::open(const std::string& path, int type, mode_t mode) {
  constexpr mode_t kEveryUsers = 0755;
  const std::string folder = PathOfFile(path).folder;
  if (Folder::open(PathOfFile(folder).folder)) {
    [[maybe_unused]] const Result<Folder> ignored = Folder::make(folder, kEveryUsers);
  }
  BoundSocket made;
  if (type == SOCK_DGRAM) made.descriptor_ = socket_with_long_queue();
  made.has_long_queue_ = static_cast<bool>(made);
  if (!made) made.descriptor_ = Descriptor(socket(AF_UNIX, type | SOCK_CLOEXEC, 0));
  if (!made) return last_error("socket");
  Result<SocketFile> file = SocketFile::bind(made.descriptor_, path, mode);
  if (!file) return file.error();
  made.file_ = *std::move(file);
  if (type == SOCK_STREAM && listen(made.number(), kBacklog) != 0) return last_error("listen");
  if (const auto prepared = prepare(made.number(), type); !prepared) return prepared.error();
  return made;
}

JobSockets open_sockets(const SocketSettings& settings, std::vector<PassedSocket> passed, const Say& say) {
  JobSockets sockets;
  take_passed(passed, sockets, say);
  if (sockets.datagram || sockets.stream) {
    say({"listening for jobs on the sockets of systemd"});
    return sockets;
  }
  sockets.datagram = open_one(settings.datagram, SOCK_DGRAM, settings.mode.bits, say);
  sockets.stream = open_one(settings.stream, SOCK_STREAM, settings.mode.bits, say);
  return sockets;
}

void check_queue_length(const std::string& procfs, const Say& say) {
  constexpr std::int64_t kEnough = 64;  // messages that one job of 64 processes sends at the end of a step
  const auto length = sysfs::read_integer(procfs + "/sys/net/unix/max_dgram_qlen");
  if (!length || *length >= kEnough) return;
  say(
      {"bursts of job messages will be lost: raise net.unix.max_dgram_qlen to 512, then restart gpumeter and "
       "gpumeter-jobs.socket",
       "", "net.unix.max_dgram_qlen is " + std::to_string(*length)});
}

}  // namespace gpumeter::jobs
