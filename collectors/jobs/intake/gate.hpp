#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "collectors/attribution/names/user_names.hpp"
#include "collectors/jobs/intake/process_kin.hpp"
#include "collectors/jobs/wire/refusal.hpp"
#include "collectors/jobs/wire/sender.hpp"

namespace gpumeter::jobs {

/// The kernel's report of a sender: SCM_CREDENTIALS or SO_PEERCRED.
struct Credentials {
  std::int32_t pid = 0;  ///< in the daemon's namespace; 0 if it is not visible from there
  std::uint32_t uid = 0;

  auto operator<=>(const Credentials&) const = default;
};

/// An admitted sender.
struct Guest {
  SenderId id;
  std::string user;
  std::shared_ptr<const SenderFacts> facts;  ///< nullptr: nothing is known of the process

  /// Valid as long as this object.
  Sender sender() const noexcept { return {id, user, facts.get()}; }
};

/// Admits the users that the configuration names, and identifies their processes. One thread.
///
/// The kernel vouches for the uid, except that a sender with CAP_SETUID may name any; so the gate compares it
/// with /proc/PID/status. It reads start times at most once a second a process, and the facts once.
class Gate {
 public:
  Gate(std::string procfs, UserNames& names, ProcessKin& kin)
      : procfs_(std::move(procfs)), names_(names), kin_(kin) {}

  /// Names or uids; empty: everybody.
  void let_in(std::vector<std::string> users) { users_ = std::move(users); }

  /// `sent`: when the kernel took the message, as `now` on CLOCK_BOOTTIME. The guest's pid is 0 if the
  /// process cannot be identified: it is in another namespace or hidden (hidepid=), or began after the
  /// message. The start time is 0 if the process had ended before it was first seen.
  std::variant<Guest, Refusal> admit(const Credentials& who, Nanoseconds sent, Nanoseconds now);

  std::string name_of(std::uint32_t uid) { return names_.of(uid); }
  /// Whether it is still the same process, and not a zombie.
  bool is_alive(const SenderId& id) const;
  /// Forgets processes that have been silent. Once a second or so.
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
  const Seen& seen(const Credentials& who, Nanoseconds now);
  void look(const Credentials& who, Seen& seen);
  std::string stat_of(std::int32_t pid) const;
  bool has_uid(const Credentials& who) const;
  std::shared_ptr<const SenderFacts> facts_of(std::int32_t pid, std::uint64_t start_time);

  const std::string procfs_;
  UserNames& names_;
  ProcessKin& kin_;
  std::vector<std::string> users_;
  std::map<Credentials, Seen> seen_;
};

}  // namespace gpumeter::jobs
