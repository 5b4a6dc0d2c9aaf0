#include "collectors/jobs/intake/process_identities.hpp"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>

#include "base/proc.hpp"
#include "collectors/attribution/cgroup/workload_of.hpp"
#include "collectors/sources/sysfs.hpp"

namespace gpumeter::jobs {
namespace {

constexpr Nanoseconds kFresh = std::chrono::seconds(1);
/// Of a process that is gone, for what it sent before: as long as a daemon's restart takes, and then some.
constexpr Nanoseconds kKept = std::chrono::minutes(1);
/// A user that makes processes without end does not make the table grow without end.
constexpr std::size_t kMostSeen = 16'384;
/// The start time is cut to ticks and the time of sending comes from another clock.
constexpr Nanoseconds kTolerance = std::chrono::milliseconds(20);

Nanoseconds time_of(std::uint64_t ticks) noexcept {
  static const auto per_second = static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK));
  return std::chrono::seconds(ticks / per_second) +
         Nanoseconds(static_cast<std::int64_t>(ticks % per_second * 1'000'000'000 / per_second));
}

}  // namespace

std::optional<Identity> ProcessIdentities::of(const Credentials& who, Nanoseconds sent, Nanoseconds now) {
  const Identity unknown{{who.uid, 0, 0}, nullptr};
  if (who.pid <= 0) return unknown;
  const auto found = seen_.find(who);
  const Seen* const before = found == seen_.end() ? nullptr : &found->second;
  Seen seen = before != nullptr && now - before->at < kFresh ? *before : look(who, before);
  if (before == nullptr || before->at != seen.at) {
    seen.at = now;
    if (seen_.size() >= kMostSeen) seen_.clear();
    seen_.insert_or_assign(who, seen);
  }
  if (seen.standing == Standing::forged) return std::nullopt;
  if (seen.standing == Standing::hidden || time_of(seen.start_time) > sent + kTolerance) return unknown;
  return Identity{{who.uid, who.pid, seen.start_time}, std::move(seen.facts)};
}

ProcessIdentities::Seen ProcessIdentities::look(const Credentials& who, const Seen* before) {
  const auto start = start_time(who.pid);
  if (start && !has_uid(who)) return {Standing::forged, *start, {}};
  if (start) {
    const bool same = before != nullptr && before->facts != nullptr && before->start_time == *start;
    return {Standing::known, *start, {}, same ? before->facts : facts_of(who.pid, *start)};
  }
  if (exists_(who.pid)) return {Standing::hidden, 0, {}};
  return before != nullptr ? Seen{Standing::gone, before->start_time, {}, before->facts} : Seen{};
}

std::shared_ptr<const SenderFacts> ProcessIdentities::facts_of(std::int32_t pid, std::uint64_t start_time) {
  const cgroup::Attribution group = cgroup::attribution_of(cgroup::read_path(kin_.of(pid).group));
  return std::make_shared<const SenderFacts>(
      SenderFacts{time_of(start_time), {group.kind, group.workload}, kin_.ancestors_of(pid)});
}

bool ProcessIdentities::is_alive(const SenderId& id) const {
  const std::string stat = stat_of(id.pid);
  const auto start = proc::start_ticks(stat);
  return start && *start == id.start_time && proc::is_alive(stat);
}

void ProcessIdentities::tick(Nanoseconds now) {
  kin_.begin_pass(now);
  std::erase_if(seen_, [&](const auto& entry) { return now - entry.second.at >= kKept; });
}

std::optional<std::uint64_t> ProcessIdentities::start_time(std::int32_t pid) const {
  return proc::start_ticks(stat_of(pid));
}

std::string ProcessIdentities::stat_of(std::int32_t pid) const {
  return sysfs::read_text(proc::path(procfs_, pid, "stat"));
}

/// One of the four: real (which SCM_CREDENTIALS has), effective (SO_PEERCRED), saved, of the file system.
/// Where the file cannot be read the process has just ended, and the kernel's word stands.
bool ProcessIdentities::has_uid(const Credentials& who) const {
  const auto uids = proc::uids(sysfs::read_text(proc::path(procfs_, who.pid, "status")));
  return !uids || std::ranges::find(*uids, who.uid) != uids->end();
}

bool ProcessIdentities::exists_now(std::int32_t pid) { return kill(pid, 0) == 0 || errno == EPERM; }

}  // namespace gpumeter::jobs
