#include "programs/profiler/kineto.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>
#include <system_error>
#include <utility>

#include "base/proc.hpp"

#ifndef SO_PASSPIDFD
#define SO_PASSPIDFD 76
#endif
#ifndef SCM_PIDFD
#define SCM_PIDFD 0x04
#endif

namespace gpumeter::profiles::kineto {
namespace {

constexpr std::string_view kContext = "ctxt";
constexpr std::string_view kRequest = "req";
constexpr std::size_t kTypeBytes = 32;
constexpr std::size_t kContextBytes = 16;  // i32 gpu, i32 pid, i64 job
constexpr std::size_t kFixedBytes = 16;    // of a request: i32 type, i32 count, i64 job

// Kineto's type bits; until July 2026 there was also 1, events.
constexpr std::int32_t kActivities = 2;

constexpr auto kWarmUp = std::chrono::seconds(1);

template <class Number>
Number number_at(std::string_view bytes, std::size_t at) noexcept {
  Number number{};
  std::memcpy(&number, bytes.data() + at, sizeof number);
  return number;
}

std::string datagram(std::string_view type, std::string_view payload) {
  std::string bytes(kHeaderBytes, '\0');
  const std::uint64_t size = payload.size();
  std::memcpy(bytes.data(), &size, sizeof size);
  type.copy(bytes.data() + sizeof size, kTypeBytes);
  return bytes.append(payload);
}

std::string line(std::string_view key, std::int64_t value) {
  return std::string(key) + "=" + std::to_string(value) + "\n";
}

}  // namespace

std::optional<Message> parse(std::string_view datagram) noexcept {
  if (datagram.size() < kHeaderBytes) return std::nullopt;
  const std::string_view payload = datagram.substr(kHeaderBytes);
  if (number_at<std::uint64_t>(datagram, 0) != payload.size()) return std::nullopt;
  std::string_view type = datagram.substr(sizeof(std::uint64_t), kTypeBytes);
  type = type.substr(0, type.find('\0'));
  if (type == kContext) {
    if (payload.size() != kContextBytes) return std::nullopt;
    return Message{Message::Kind::context, false};
  }
  if (type != kRequest || payload.size() <= kFixedBytes) return std::nullopt;
  const auto count = number_at<std::int32_t>(payload, sizeof(std::int32_t));
  const std::size_t numbers = payload.size() - kFixedBytes;
  if (count < 1 || numbers / sizeof(std::int32_t) != static_cast<std::size_t>(count)) return std::nullopt;
  if (numbers % sizeof(std::int32_t) != 0) return std::nullopt;
  return Message{Message::Kind::request, (number_at<std::int32_t>(payload, 0) & kActivities) != 0};
}

std::string file_of(const std::string& path, int inner_pid) {
  constexpr std::string_view kEnd = ".json";
  return path.substr(0, path.size() - kEnd.size()) + "_" + std::to_string(inner_pid) + std::string(kEnd);
}

std::string answer(std::string_view text) { return datagram(kRequest, text); }

std::string answer_context(std::int32_t registered) {
  char bytes[sizeof registered];
  std::memcpy(bytes, &registered, sizeof registered);
  return datagram(kContext, {bytes, sizeof bytes});
}

// Without the warm-up's line Kineto waits 5 s before the trace begins. A process that never reports a step
// falls back to the duration.
std::string text_of(const Order& order, Nanoseconds unix) {
  const auto count = [](auto time) {
    return std::max<std::int64_t>(1, std::chrono::ceil<std::chrono::milliseconds>(time).count());
  };
  std::string text = "ACTIVITIES_LOG_FILE=" + order.path + "\n";
  text += line("ACTIVITIES_WARMUP_PERIOD_SECS", kWarmUp.count());
  if (order.extent.steps) {
    text += line("PROFILE_START_ITERATION", 0) + line("PROFILE_START_ITERATION_ROUNDUP", 1) +
            line("ACTIVITIES_ITERATIONS", *order.extent.steps);
  } else {
    text += line("PROFILE_START_TIME", count(unix + kStartAfter));
  }
  return text + line("ACTIVITIES_DURATION_MSECS", count(order.extent.duration));
}

Nanoseconds least_time(const Extent& extent) noexcept {
  return extent.steps ? Nanoseconds(0) : kStartAfter + extent.duration;
}

Result<Done> check_path(std::string_view path) {
  const auto is_plain = [](char c) { return c > ' ' && c < '\x7f' && c != '=' && c != '#'; };
  if (!path.starts_with('/')) return Error("the folder of the trace must be an absolute path");
  if (!std::ranges::all_of(path, is_plain) || path.find("..") != std::string_view::npos) {
    return Error("the path of the trace must be of printable ASCII characters without blanks, = # and ..");
  }
  // Kineto has no limit; this one keeps a datagram small.
  constexpr std::size_t kLongest = 400;
  if (path.size() > kLongest) return Error("the path of the trace is too long");
  return Done{};
}

}  // namespace gpumeter::profiles::kineto

namespace gpumeter::profiles {

std::string KinetoDoor::hear(const Peer& peer, const kineto::Message& message, Nanoseconds now,
                             Nanoseconds unix) {
  Known* const process = known(peer);
  if (process == nullptr) return {};
  process->heard = now;
  return message.kind == kineto::Message::Kind::request ? advance(*process, message.is_free, now, unix) : "";
}

KinetoDoor::Known* KinetoDoor::known(const Peer& peer) {
  const auto at = known_.find(peer.pid);
  if (at != known_.end()) {
    const Peer& before = at->second.peer;
    if (before.uid == peer.uid && before.address == peer.address) return &at->second;
    forget(at, "another program took the place of the process");
  }
  const std::uint32_t payer = payer_of(peer.uid, owner_of_(peer.uid));
  if (!make_room(payer)) return nullptr;
  shares_.add(payer);
  Known& added = known_[peer.pid];
  added.peer = peer;
  added.payer = payer;
  return &added;
}

// If all places are taken, a process of the user with the most processes leaves: the one that is silent the
// longest. So one user cannot keep the others out.
bool KinetoDoor::make_room(std::uint32_t payer) {
  if (shares_.of(payer) >= kMostOfUser) return false;
  if (known_.size() < kMost) return true;
  const std::optional<std::uint32_t> crowd = shares_.yields_to(payer);
  if (!crowd) return false;
  auto oldest = known_.end();
  for (auto at = known_.begin(); at != known_.end(); ++at) {
    if (at->second.payer != *crowd) continue;
    if (oldest == known_.end() || at->second.heard < oldest->second.heard) oldest = at;
  }
  forget(oldest, "too many processes poll");
  return true;
}

// A process that does not turn busy although its trace must last longer has rejected the order. Its first
// poll may have been sent before the order arrived.
std::string KinetoDoor::advance(Known& known, bool is_free, Nanoseconds now, Nanoseconds unix) {
  if (known.stage == Stage::asked && is_free) {
    known.stage = Stage::taken;
    known.taken = now;
    known.was_busy = false;
    known.idle_polls = 0;
    return kineto::text_of(known.order, unix);
  }
  if (known.stage != Stage::taken) return {};
  known.was_busy = known.was_busy || !is_free;
  if (!is_free) return {};
  constexpr int kRejected = 2;
  constexpr Nanoseconds kWrite = std::chrono::seconds(1);
  const bool should_be_busy = now - known.taken < kineto::least_time(known.order.extent) + kWrite;
  const bool is_unseen = !should_be_busy && known.idle_polls == 0;  // the polls are too rare to see the trace
  if (known.was_busy || is_unseen) {
    known.stage = Stage::done;
  } else if (++known.idle_polls >= kRejected) {
    fail(known, "the process did not begin the trace; its log says why");
  }
  return {};
}

void KinetoDoor::fail(Known& known, std::string why) {
  if (known.stage != Stage::asked && known.stage != Stage::taken) return;
  known.stage = Stage::failed;
  known.why = std::move(why);
}

void KinetoDoor::unsent(int pid) {
  const auto at = known_.find(pid);
  if (at != known_.end() && at->second.stage == Stage::taken) at->second.stage = Stage::asked;
}

void KinetoDoor::tick(Nanoseconds now) {
  for (auto at = known_.begin(); at != known_.end();) {
    const auto next = std::next(at);
    if (now - at->second.heard >= kForgotten) forget(at, "the process no longer polls");
    at = next;
  }
}

void KinetoDoor::gone(int pid) {
  if (const auto at = known_.find(pid); at != known_.end()) forget(at, "the process has ended");
}

void KinetoDoor::forget(std::map<int, Known>::iterator at, const std::string& why) {
  fail(at->second, why);
  if (at->second.stage == Stage::failed) lost_[at->first] = at->second.why;
  shares_.remove(at->second.payer);
  known_.erase(at);
}

std::vector<Process> KinetoDoor::processes() const {
  std::vector<Process> processes;
  for (const auto& [pid, known] : known_) processes.push_back({pid, known.peer.uid});
  return processes;
}

Result<Done> KinetoDoor::ask(int pid, const Order& order, Nanoseconds) {
  const auto at = known_.find(pid);
  if (at == known_.end()) return Error("it no longer asks for profiles");
  if (at->second.stage != Stage::none) return Error("another request for it is under way");
  at->second.stage = Stage::asked;
  at->second.order = order;
  return Done{};
}

Progress KinetoDoor::progress(int pid) const {
  if (const auto lost = lost_.find(pid); lost != lost_.end()) return {Stage::failed, lost->second};
  const auto at = known_.find(pid);
  return at == known_.end() ? Progress{} : Progress{at->second.stage, at->second.why};
}

void KinetoDoor::release(int pid) {
  lost_.erase(pid);
  const auto at = known_.find(pid);
  if (at == known_.end()) return;
  at->second.stage = Stage::none;
  at->second.why.clear();
}

std::string KinetoDoor::file_of(const Order& order, int, int inner_pid) const {
  return kineto::file_of(order.path, inner_pid);
}

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
