#include "collectors/profiles/kineto_socket.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <system_error>
#include <utility>

#include "base/peer_process.hpp"

#ifndef SO_PASSPIDFD
#define SO_PASSPIDFD 76
#endif
#ifndef SCM_PIDFD
#define SCM_PIDFD 0x04
#endif

namespace gpumeter::profiles {
namespace {

constexpr std::string_view kName = "dynolog";
constexpr socklen_t kFamilyBytes = offsetof(sockaddr_un, sun_path);

Error last_error(const char* what) {
  return Error(std::string(what) + ": " + std::generic_category().message(errno));
}

/// The sender of a datagram, as the kernel reports it.
struct Sender {
  ucred from{};
  Descriptor process = {};  ///< its pidfd; none before Linux 6.5, or if the process was gone
};

// Closes descriptors that a client sends along, if a kernel delivers them.
Sender sender_of(msghdr& header) {
  Sender sender;
  for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
    if (part->cmsg_level != SOL_SOCKET) continue;
    if (part->cmsg_type == SCM_CREDENTIALS) std::memcpy(&sender.from, CMSG_DATA(part), sizeof sender.from);
    if (part->cmsg_type == SCM_PIDFD) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(part), sizeof number);
      if (number >= 0) sender.process = Descriptor(number);
    }
    if (part->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = CMSG_LEN(0); at + sizeof(int) <= part->cmsg_len; at += sizeof(int)) {
      int number = -1;
      std::memcpy(&number, CMSG_DATA(part) + (at - CMSG_LEN(0)), sizeof number);
      const Descriptor closed(number);
    }
  }
  return sender;
}

bool send(int number, const sockaddr_un& to, socklen_t size, const std::string& bytes) {
  const auto* const any = reinterpret_cast<const sockaddr*>(&to);
  return sendto(number, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL, any, size) >= 0;
}

}  // namespace

KinetoSocket::KinetoSocket(jobs::BoundSocket socket, std::string folder)
    : socket_(std::move(socket)), folder_(std::move(folder)) {
  constexpr int kOn = 1;
  has_pidfds_ = setsockopt(socket_.number(), SOL_SOCKET, SO_PASSPIDFD, &kOn, sizeof kOn) == 0;
}

Result<KinetoSocket> KinetoSocket::open_abstract() {
  Descriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket) return last_error("socket");
  constexpr int kOn = 1;
  for (const int option : {SO_PASSCRED, SO_TIMESTAMPNS}) {
    if (setsockopt(socket.number(), SOL_SOCKET, option, &kOn, sizeof kOn) != 0) return last_error("socket");
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  kName.copy(address.sun_path + 1, kName.size());
  constexpr socklen_t kSize = kFamilyBytes + 1 + kName.size() + 1;
  if (bind(socket.number(), reinterpret_cast<const sockaddr*>(&address), kSize) != 0) {
    if (errno == EADDRINUSE) return Error("another program, such as dynolog, has the name");
    return last_error("bind");
  }
  return KinetoSocket(jobs::BoundSocket(std::move(socket)), "");
}

Result<KinetoSocket> KinetoSocket::open_in(const std::string& folder) {
  constexpr mode_t kDropBox = 01733;
  if (const Result<Folder> made = Folder::make(folder, kDropBox); !made) return made.error();
  constexpr mode_t kEveryone = 0666;
  auto opened = jobs::BoundSocket::open(folder + "/" + std::string(kName), SOCK_DGRAM, kEveryone);
  if (!opened) return opened.error();
  if (!opened->file().has_own_address()) return Error(folder + ": another user could replace the folder");
  return KinetoSocket(*std::move(opened), folder);
}

void KinetoSocket::serve(const Answer& answer, const Unsent& unsent) const {
  constexpr int kAtOnce = 64;
  for (int i = 0; i < kAtOnce && serve_one(answer, unsent); ++i) {
  }
}

// Room for exactly the time, which is not used, the credentials and the pidfd. The kernel puts the pidfd
// last: a sender whose own descriptors take its place is not served, as one that has ended by now.
bool KinetoSocket::serve_one(const Answer& answer, const Unsent& unsent) const {
  std::array<char, kineto::kMostBytes> bytes{};
  alignas(cmsghdr)
      std::array<char, CMSG_SPACE(sizeof(timespec)) + CMSG_SPACE(sizeof(ucred)) + CMSG_SPACE(sizeof(int))>
          control{};
  sockaddr_un from{};
  iovec part{bytes.data(), bytes.size()};
  msghdr header{};
  header.msg_name = &from;
  header.msg_namelen = sizeof from;
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  const ssize_t size = recvmsg(socket_.number(), &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (size < 0) return errno == EINTR;
  const Sender sender = sender_of(header);
  if (has_pidfds_ && !(sender.process && is_alive(sender.process))) return true;
  const auto length = std::min<socklen_t>(header.msg_namelen, sizeof from);
  if ((header.msg_flags & MSG_TRUNC) != 0 || sender.from.pid <= 0 || length <= kFamilyBytes) return true;
  const Peer peer{sender.from.pid, sender.from.uid, std::string(from.sun_path, length - kFamilyBytes)};
  if (!is_ours(peer.address)) return true;
  const std::string reply = answer(peer, {bytes.data(), static_cast<std::size_t>(size)});
  if (!reply.empty() && !send_to(peer, reply)) unsent(peer);
  return true;
}

bool KinetoSocket::is_ours(std::string_view address) const noexcept {
  if (folder_.empty()) return address.size() > 1 && address.front() == '\0';
  address = address.substr(0, address.find('\0'));
  const bool is_in_folder = address.starts_with(folder_) && address.substr(folder_.size()).starts_with('/');
  return is_in_folder && address.find('/', folder_.size() + 1) == std::string_view::npos;
}

// The file is opened first, so that the one that was checked is the one that gets the answer.
bool KinetoSocket::send_to(const Peer& peer, const std::string& bytes) const {
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  if (folder_.empty()) {
    peer.address.copy(to.sun_path, sizeof to.sun_path);
    return send(socket_.number(), to, kFamilyBytes + static_cast<socklen_t>(peer.address.size()), bytes);
  }
  const Descriptor file(open(peer.address.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (!file || fstat(file.number(), &status) != 0) return false;
  if (!S_ISSOCK(status.st_mode) || status.st_uid != peer.uid) return false;
  const std::string path = "/proc/self/fd/" + std::to_string(file.number());
  path.copy(to.sun_path, sizeof to.sun_path - 1);
  return send(socket_.number(), to, sizeof to, bytes);
}

}  // namespace gpumeter::profiles
