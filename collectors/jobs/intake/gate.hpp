#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/descriptor.hpp"
#include "base/users.hpp"
#include "collectors/attribution/names/user_names.hpp"
#include "collectors/jobs/wire/line.hpp"
#include "collectors/jobs/wire/sender.hpp"

namespace gpumeter::jobs {

/// The sender as the kernel reports it: SCM_CREDENTIALS or SO_PEERCRED.
struct Credentials {
  std::int32_t pid = 0;  ///< in the daemon's pid namespace; 0 if not visible there
  std::uint32_t uid = 0;

  auto operator<=>(const Credentials&) const = default;
};

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
  std::variant<Guest, Refusal> admit(const Credentials& who, Nanoseconds sent, Nanoseconds now);

  std::string name_of(std::uint32_t uid) { return names_.soon(uid); }
  std::uint32_t owner_of(std::uint32_t uid) const { return owners_.owner_of(uid); }
  /// Returns whether the process still exists with the same start time, and is no zombie.
  bool is_alive(const SenderId& id) const;
  /// Removes processes that have been silent. Call about once a second.
  void tick(Nanoseconds now);

 private:
  enum class Standing : std::uint8_t { known, gone, hidden, forged };
  struct Seen {
    Standing standing = Standing::gone;
    std::uint64_t start_time = 0;
    std::shared_ptr<const SenderFacts> facts = {};
    Nanoseconds at{};
  };

  bool is_invited(std::uint32_t uid, const std::string& name) const;
  bool is_invited(std::uint32_t uid, const Guest& guest) const;
  const Seen& seen(const Credentials& who, Nanoseconds now);
  void look(const Credentials& who, Seen& seen);
  std::string stat_of(std::int32_t pid) const;
  bool has_uid(const Credentials& who) const;
  std::shared_ptr<const SenderFacts> facts_of(std::int32_t pid, std::uint64_t start_time);

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
  const Answer& of(const Credentials& who, Nanoseconds sent, Nanoseconds now);
  /// Forgets all answers. Call it before the messages of another moment.
  void clear() noexcept;

 private:
  struct Known {
    Answer answer;
    Nanoseconds sent;  ///< of the message that the gate was asked about

    bool holds(const Credentials& who, Nanoseconds sent_then) const noexcept;
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
  std::variant<int, Refusal> add(Descriptor connection, Nanoseconds now);
  /// Reads one buffer, and closes a connection that has ended or is broken. Returns the number of lines and
  /// frames that were too long.
  std::uint64_t read(int number, Nanoseconds now, const Take& take);
  /// Returns how many connections had to give way to others since the last call.
  std::uint64_t take_displaced() noexcept { return std::exchange(displaced_, 0); }
  /// From now on clients cannot send; what they have sent can still be read.
  void refuse_senders() const;
  /// Closes idle connections. Call about once a second.
  void tick(Nanoseconds now);
  std::size_t size() const noexcept { return open_.size(); }

 private:
  struct Connection {
    Descriptor descriptor;
    Guest guest;
    StreamSplitter splitter;
    Nanoseconds heard;
  };

  static std::uint32_t payer(const Guest& guest) noexcept { return payer_of(guest.id.uid, guest.owner); }
  bool make_room(std::uint32_t paying);
  void erase(std::map<int, Connection>::iterator at);

  Gate& gate_;
  std::map<int, Connection> open_;
  Shares<std::uint32_t> shares_;  ///< of open_
  std::uint64_t displaced_ = 0;
};

}  // namespace gpumeter::jobs
