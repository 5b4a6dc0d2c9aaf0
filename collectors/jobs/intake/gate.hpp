#pragma once

#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/descriptor.hpp"
#include "base/proc.hpp"
#include "base/users.hpp"
#include "collectors/attribution/cgroup/workload_of.hpp"
#include "collectors/attribution/names/user_names.hpp"
#include "collectors/jobs/wire/line.hpp"
#include "collectors/jobs/wire/sender.hpp"
#include "collectors/sources/sysfs.hpp"

namespace gpumeter::jobs {

/// An admitted sender.
struct Guest {
  SenderId id;
  std::uint32_t owner = 0;                   ///< of the subordinate uid `id.uid`; otherwise `id.uid`
  std::string user;                          ///< the name of `owner`
  std::shared_ptr<const SenderFacts> facts;  ///< nullptr: nothing is known about the process

  /// Valid as long as this object.
  Sender sender() const noexcept { return {id, user, facts.get(), owner}; }
};

/// Admits the users that the configuration names, and identifies their processes. One thread.
///
/// A process in a user namespace has a subordinate uid of the user who started it. It counts as that user: a
/// user must not get the room of 65536 users. It is admitted under either uid.
///
/// The kernel guarantees the uid, except that a sender with CAP_SETUID may name any. The gate therefore
/// compares it with /proc/PID/status. It reads the start time of a process at most once a second, and the
/// facts once.
class Gate {
 public:
  Gate(std::string procfs, UserNames& names, ProcessKin& kin, const UserOwners& owners)
      : procfs_(std::move(procfs)), names_(names), kin_(kin), owners_(owners) {}

  /// `users`: names or uids; empty admits everybody.
  void let_in(std::vector<std::string> users) { users_ = std::move(users); }

  /// `sent`: when the kernel received the message, on CLOCK_BOOTTIME like `now`. The guest's pid is 0 if the
  /// process cannot be identified. Such a process is in another namespace, is hidden (hidepid=), or began
  /// after the message. The start time is 0 if the process had ended before the gate first read it.
  std::variant<Guest, Refusal> admit(const Credentials& who, Nanoseconds sent, Nanoseconds now) {
    const std::uint32_t owner = owner_of(who.uid);
    Guest guest{{who.uid, 0, 0}, owner, names_.soon(owner), nullptr};
    if (!is_invited(who.uid, guest)) return Refusal::user;
    if (who.pid <= 0) return guest;
    const Seen& process = seen(who, now);
    if (process.standing == Standing::forged) return Refusal::identity;
    if (process.standing == Standing::hidden || time_of(process.start_time) > sent + kTolerance) return guest;
    guest.id = {who.uid, who.pid, process.start_time};
    guest.facts = process.facts;
    return guest;
  }

  std::string name_of(std::uint32_t uid) { return names_.soon(uid); }
  std::uint32_t owner_of(std::uint32_t uid) const { return owners_.owner_of(uid); }
  /// Returns whether the process still exists with the same start time, and is no zombie.
  bool is_alive(const SenderId& id) const {
    const std::string stat = stat_of(id.pid);
    const auto start = proc::start_ticks(stat);
    return start && *start == id.start_time && proc::is_alive(stat);
  }
  /// Removes processes that have been silent. Call about once a second.
  void tick(Nanoseconds now) {
    std::erase_if(seen_, [&](const auto& entry) { return now - entry.second.at >= kKept; });
  }

 private:
  static constexpr Nanoseconds kFresh = std::chrono::seconds(1);
  /// Keeps a process that is gone for its last messages, longer than a restart of the daemon takes.
  static constexpr Nanoseconds kKept = std::chrono::minutes(1);
  /// Limits the table against a user that starts processes without end.
  static constexpr std::size_t kMostSeen = 16'384;
  /// The start time is cut to ticks, and the time of sending comes from another clock.
  static constexpr Nanoseconds kTolerance = std::chrono::milliseconds(20);

  enum class Standing : std::uint8_t { known, gone, hidden, forged };
  struct Seen {
    Standing standing = Standing::gone;
    std::uint64_t start_time = 0;
    std::shared_ptr<const SenderFacts> facts = {};
    Nanoseconds at{};
  };

  static Nanoseconds time_of(std::uint64_t ticks) noexcept {
    static const auto per_second = static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK));
    return std::chrono::seconds(ticks / per_second) +
           Nanoseconds(static_cast<std::int64_t>(ticks % per_second * 1'000'000'000 / per_second));
  }
  static bool exists(std::int32_t pid) { return kill(pid, 0) == 0 || errno == EPERM; }
  bool is_invited(std::uint32_t uid, const std::string& name) const {
    const auto is_user = [&](const std::string& user) { return user == name || user == std::to_string(uid); };
    return std::ranges::any_of(users_, is_user);
  }
  bool is_invited(std::uint32_t uid, const Guest& guest) const {
    if (users_.empty() || is_invited(guest.owner, guest.user)) return true;
    return uid != guest.owner && is_invited(uid, names_.soon(uid));
  }
  const Seen& seen(const Credentials& who, Nanoseconds now) {
    if (seen_.size() >= kMostSeen && !seen_.contains(who)) seen_.clear();
    const auto [found, is_new] = seen_.try_emplace(who);
    Seen& process = found->second;
    if (is_new || now - process.at >= kFresh) {
      look(who, process);
      process.at = now;
    }
    return process;
  }
  void look(const Credentials& who, Seen& seen) {
    const auto start = proc::start_ticks(stat_of(who.pid));
    if (!start && exists(who.pid)) {
      seen = {Standing::hidden};
    } else if (!start) {
      seen.standing = Standing::gone;
    } else if (!has_uid(who)) {
      seen = {Standing::forged, *start};
    } else if (seen.facts == nullptr || seen.start_time != *start) {
      seen = {Standing::known, *start, facts_of(who.pid, *start)};
    } else {
      seen.standing = Standing::known;
    }
  }
  std::string stat_of(std::int32_t pid) const { return sysfs::read_text(proc::path(procfs_, pid, "stat")); }
  /// The uid may be any of four: real (used by SCM_CREDENTIALS), effective (used by SO_PEERCRED), saved, or
  /// that of the file system. If the file cannot be read, the process has just ended, and the kernel's report
  /// stands.
  bool has_uid(const Credentials& who) const {
    const auto uids = proc::uids(sysfs::read_text(proc::path(procfs_, who.pid, "status")));
    return !uids || std::ranges::find(*uids, who.uid) != uids->end();
  }
  std::shared_ptr<const SenderFacts> facts_of(std::int32_t pid, std::uint64_t start_time) {
    const cgroup::Attribution group = cgroup::attribution_of(cgroup::read_path(kin_.of(pid).group));
    return std::make_shared<const SenderFacts>(
        SenderFacts{time_of(start_time), {group.kind, group.workload}, kin_.ancestors_of(pid)});
  }

  const std::string procfs_;
  UserNames& names_;
  ProcessKin& kin_;
  const UserOwners& owners_;
  std::vector<std::string> users_;
  std::map<Credentials, Seen> seen_;
};

/// The gate's answers about the senders of one moment, so that a sender of many messages is looked up once.
/// One thread.
class Admissions {
 public:
  using Answer = std::variant<Guest, Refusal>;

  explicit Admissions(Gate& gate) : gate_(gate) {}

  /// See Gate::admit(). Valid until the next call.
  const Answer& of(const Credentials& who, Nanoseconds sent, Nanoseconds now) {
    if (last_ == known_.end() || last_->first != who) last_ = known_.find(who);
    if (last_ != known_.end() && last_->second.holds(who, sent)) return last_->second.answer;
    if (known_.size() >= kMostAnswers) known_.clear();
    last_ = known_.insert_or_assign(who, Known{gate_.admit(who, sent, now), sent}).first;
    return last_->second.answer;
  }
  /// Forgets all answers. Call it before the messages of another moment.
  void clear() noexcept {
    known_.clear();
    last_ = known_.end();
  }

 private:
  static constexpr std::size_t kMostAnswers = 1024;  ///< limits them as Gate limits its table

  struct Known {
    Answer answer;
    Nanoseconds sent;  ///< of the message that the gate was asked about

    /// The time of a message decides only whether its process had begun by then: a process that had begun
    /// stays known for later messages, and one that had not stays unknown for earlier ones.
    bool holds(const Credentials& who, Nanoseconds sent_then) const noexcept {
      const auto* const guest = std::get_if<Guest>(&answer);
      if (guest == nullptr || who.pid <= 0) return true;
      return guest->id.pid != 0 ? sent_then >= sent : sent_then <= sent;
    }
  };

  Gate& gate_;
  std::map<Credentials, Known> known_;
  std::map<Credentials, Known>::iterator last_ = known_.end();
};

/// Connections to the stream socket. Each belongs to the process that connected (SO_PEERCRED). One thread.
///
/// If all places are taken, a new connection takes the place of another: of the user with the most
/// connections, the one that is silent the longest. It does so if its own user has at least two fewer, or
/// none. So a few users cannot keep the others out.
class Connections {
 public:
  /// Each connection holds 64 KiB and a descriptor.
  static constexpr std::size_t kMost = 256;
  static constexpr std::size_t kMostOfUser = 64;
  /// When its connection is closed, python3-statsd raises an exception in the job. A job may be silent for a
  /// whole epoch, so only connections that are silent for hours are closed, or that hold the place of another
  /// user's.
  static constexpr Nanoseconds kIdle = std::chrono::hours(6);

  using Take = std::function<void(const Sender&, std::string_view payload)>;

  explicit Connections(Gate& gate) : gate_(gate) {}

  /// Returns the number of the connection, or the reason for which it was closed at once.
  std::variant<int, Refusal> add(Descriptor connection, Nanoseconds now) {
    ucred peer{};
    socklen_t size = sizeof peer;
    if (getsockopt(connection.number(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return Refusal::identity;
    auto admitted = gate_.admit({peer.pid, peer.uid}, now, now);
    if (const auto* refusal = std::get_if<Refusal>(&admitted)) return *refusal;
    const std::uint32_t paying = payer(std::get<Guest>(admitted));
    if (shares_.of(paying) >= kMostOfUser || (open_.size() >= kMost && !make_room(paying))) {
      return Refusal::connections;
    }
    shares_.add(paying);
    const int number = connection.number();
    open_.insert_or_assign(number, Connection{std::move(connection), std::get<Guest>(std::move(admitted)),
                                              StreamSplitter(), now});
    return number;
  }
  /// Reads one buffer, and closes a connection that has ended or is broken. Returns the number of lines and
  /// frames that were too long.
  std::uint64_t read(int number, Nanoseconds now, const Take& take) {
    const auto found = open_.find(number);
    if (found == open_.end()) return 0;
    auto& [descriptor, guest, splitter, heard] = found->second;
    if (guest.user == std::to_string(guest.owner))
      guest.user = gate_.name_of(guest.owner);  // looked up by now?
    const std::span<char> room = splitter.room();
    const ssize_t got = recv(descriptor.number(), room.data(), room.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
    const std::uint64_t overlong = splitter.overlong();
    heard = now;
    if (got > 0) splitter.received(static_cast<std::size_t>(got));
    while (const auto payload = splitter.next()) take(guest.sender(), *payload);
    const std::uint64_t lost = splitter.overlong() - overlong + (splitter.broken() ? 1 : 0);
    if (got <= 0 || splitter.broken()) erase(found);
    return lost;
  }
  /// Returns how many connections had to give way to others since the last call.
  std::uint64_t take_displaced() noexcept { return std::exchange(displaced_, 0); }
  /// From now on clients cannot send; what they have sent can still be read.
  void refuse_senders() const {
    for (const auto& [number, connection] : open_) shutdown(number, SHUT_RD);
  }
  /// Closes idle connections. Call about once a second.
  void tick(Nanoseconds now) {
    for (auto each = open_.begin(); each != open_.end();) {
      const auto next = std::next(each);
      if (now - each->second.heard >= kIdle) erase(each);
      each = next;
    }
  }
  std::size_t size() const noexcept { return open_.size(); }

 private:
  struct Connection {
    Descriptor descriptor;
    Guest guest;
    StreamSplitter splitter;
    Nanoseconds heard;
  };

  static std::uint32_t payer(const Guest& guest) noexcept { return payer_of(guest.id.uid, guest.owner); }
  bool make_room(std::uint32_t paying) {
    const std::optional<std::uint32_t> crowd = shares_.yields_to(paying);
    if (!crowd) return false;
    auto longest = open_.end();
    for (auto each = open_.begin(); each != open_.end(); ++each) {
      if (payer(each->second.guest) != *crowd) continue;
      if (longest == open_.end() || each->second.heard < longest->second.heard) longest = each;
    }
    erase(longest);
    ++displaced_;
    return true;
  }
  void erase(std::map<int, Connection>::iterator at) {
    shares_.remove(payer(at->second.guest));
    open_.erase(at);
  }

  Gate& gate_;
  std::map<int, Connection> open_;
  Shares<std::uint32_t> shares_;  ///< of open_
  std::uint64_t displaced_ = 0;
};

}  // namespace gpumeter::jobs
