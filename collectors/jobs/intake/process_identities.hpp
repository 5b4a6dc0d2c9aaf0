#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "collectors/jobs/intake/process_kin.hpp"
#include "collectors/jobs/wire/sender.hpp"

namespace gpumeter::jobs {

/// What the kernel says of a sender: SCM_CREDENTIALS or SO_PEERCRED.
struct Credentials {
  std::int32_t pid = 0;  ///< in the daemon's namespace; 0 where it is not seen from there
  std::uint32_t uid = 0;

  auto operator<=>(const Credentials&) const = default;
};

/// The process behind a number.
struct Identity {
  SenderId id;
  std::shared_ptr<const SenderFacts> facts;  ///< nullptr: nothing is known of the process
};

/// From a number to the process that has it. One thread.
///
/// The uid is the kernel's word but for a sender with CAP_SETUID, which may name any: it is held against
/// /proc/PID/status. Start times are read at most once a second a process, its facts once.
class ProcessIdentities {
 public:
  /// Whether a process has the number, seen or not (kill(2) with signal 0).
  using Exists = bool (*)(std::int32_t pid);

  explicit ProcessIdentities(std::string procfs, Exists exists = exists_now)
      : procfs_(std::move(procfs)), exists_(exists), kin_(procfs_) {}

  /// Who sent what was queued at `sent`; both on CLOCK_BOOTTIME. nullopt: the process has not got that uid.
  /// The pid is 0 where the process cannot be told: of another namespace, hidden (hidepid=), or one whose
  /// number had another when it was sent. The start time is 0 where it had ended before it was first seen.
  std::optional<Identity> of(const Credentials& who, Nanoseconds sent, Nanoseconds now);

  /// Whether it is still the same process, and not a zombie that its parent has not waited for.
  bool is_alive(const SenderId& id) const;

  /// Forgets who has been silent. Once a second or so.
  void tick(Nanoseconds now);

  static bool exists_now(std::int32_t pid);

 private:
  enum class Standing : std::uint8_t { known, gone, hidden, forged };
  struct Seen {
    Standing standing = Standing::gone;
    std::uint64_t start_time = 0;
    Nanoseconds at{};
    std::shared_ptr<const SenderFacts> facts = {};
  };

  Seen look(const Credentials& who, const Seen* before);
  std::shared_ptr<const SenderFacts> facts_of(std::int32_t pid, std::uint64_t start_time);
  std::string stat_of(std::int32_t pid) const;
  std::optional<std::uint64_t> start_time(std::int32_t pid) const;
  bool has_uid(const Credentials& who) const;

  const std::string procfs_;
  const Exists exists_;
  ProcessKin kin_;
  std::map<Credentials, Seen> seen_;
};

}  // namespace gpumeter::jobs
