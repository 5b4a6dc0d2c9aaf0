#include "collectors/jobs/intake/gate.hpp"

#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "base/proc.hpp"
#include "collectors/attribution/cgroup/workload_of.hpp"
#include "collectors/sources/sysfs.hpp"

namespace gpumeter::jobs {
namespace {

constexpr Nanoseconds kFresh = std::chrono::seconds(1);
/// Keeps a process that is gone for its last messages, longer than a restart of the daemon takes.
constexpr Nanoseconds kKept = std::chrono::minutes(1);
/// Limits the table against a user that starts processes without end.
constexpr std::size_t kMostSeen = 16'384;
/// Limits the answers of one moment, for the same reason.
constexpr std::size_t kMostAnswers = 1024;
/// The start time is cut to ticks, and the time of sending comes from another clock.
constexpr Nanoseconds kTolerance = std::chrono::milliseconds(20);

Nanoseconds time_of(std::uint64_t ticks) noexcept {
  static const auto per_second = static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK));
  return std::chrono::seconds(ticks / per_second) +
         Nanoseconds(static_cast<std::int64_t>(ticks % per_second * 1'000'000'000 / per_second));
}

bool exists(std::int32_t pid) { return kill(pid, 0) == 0 || errno == EPERM; }

}  // namespace

std::variant<Guest, Refusal> Gate::admit(const Credentials& who, Nanoseconds sent, Nanoseconds now) {
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

bool Gate::is_invited(std::uint32_t uid, const Guest& guest) const {
  if (users_.empty() || is_invited(guest.owner, guest.user)) return true;
  return uid != guest.owner && is_invited(uid, names_.soon(uid));
}

bool Gate::is_invited(std::uint32_t uid, const std::string& name) const {
  const auto is_user = [&](const std::string& user) { return user == name || user == std::to_string(uid); };
  return std::ranges::any_of(users_, is_user);
}

const Gate::Seen& Gate::seen(const Credentials& who, Nanoseconds now) {
  if (seen_.size() >= kMostSeen && !seen_.contains(who)) seen_.clear();
  const auto [found, is_new] = seen_.try_emplace(who);
  Seen& process = found->second;
  if (is_new || now - process.at >= kFresh) {
    look(who, process);
    process.at = now;
  }
  return process;
}

void Gate::look(const Credentials& who, Seen& seen) {
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

/// The uid may be any of four: real (used by SCM_CREDENTIALS), effective (used by SO_PEERCRED), saved, or
/// that of the file system. If the file cannot be read, the process has just ended, and the kernel's report
/// stands.
bool Gate::has_uid(const Credentials& who) const {
  const auto uids = proc::uids(sysfs::read_text(proc::path(procfs_, who.pid, "status")));
  return !uids || std::ranges::find(*uids, who.uid) != uids->end();
}

std::shared_ptr<const SenderFacts> Gate::facts_of(std::int32_t pid, std::uint64_t start_time) {
  const cgroup::Attribution group = cgroup::attribution_of(cgroup::read_path(kin_.of(pid).group));
  return std::make_shared<const SenderFacts>(
      SenderFacts{time_of(start_time), {group.kind, group.workload}, kin_.ancestors_of(pid)});
}

bool Gate::is_alive(const SenderId& id) const {
  const std::string stat = stat_of(id.pid);
  const auto start = proc::start_ticks(stat);
  return start && *start == id.start_time && proc::is_alive(stat);
}

std::string Gate::stat_of(std::int32_t pid) const {
  return sysfs::read_text(proc::path(procfs_, pid, "stat"));
}

/// The time of a message decides only whether its process had begun by then: a process that had begun stays
/// known for later messages, and one that had not stays unknown for earlier ones.
bool Admissions::Known::holds(const Credentials& who, Nanoseconds sent_then) const noexcept {
  const auto* const guest = std::get_if<Guest>(&answer);
  if (guest == nullptr || who.pid <= 0) return true;
  return guest->id.pid != 0 ? sent_then >= sent : sent_then <= sent;
}

const Admissions::Answer& Admissions::of(const Credentials& who, Nanoseconds sent, Nanoseconds now) {
  if (last_ == known_.end() || last_->first != who) last_ = known_.find(who);
  if (last_ != known_.end() && last_->second.holds(who, sent)) return last_->second.answer;
  if (known_.size() >= kMostAnswers) known_.clear();
  last_ = known_.insert_or_assign(who, Known{gate_.admit(who, sent, now), sent}).first;
  return last_->second.answer;
}

void Admissions::clear() noexcept {
  known_.clear();
  last_ = known_.end();
}

void Gate::tick(Nanoseconds now) {
  std::erase_if(seen_, [&](const auto& entry) { return now - entry.second.at >= kKept; });
}

std::variant<int, Refusal> Connections::add(Descriptor connection, Nanoseconds now) {
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
  open_.insert_or_assign(
      number, Connection{std::move(connection), std::get<Guest>(std::move(admitted)), StreamSplitter(), now});
  return number;
}

bool Connections::make_room(std::uint32_t paying) {
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

std::uint64_t Connections::read(int number, Nanoseconds now, const Take& take) {
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

void Connections::refuse_senders() const {
  for (const auto& [number, connection] : open_) shutdown(number, SHUT_RD);
}

void Connections::tick(Nanoseconds now) {
  for (auto each = open_.begin(); each != open_.end();) {
    const auto next = std::next(each);
    if (now - each->second.heard >= kIdle) erase(each);
    each = next;
  }
}

void Connections::erase(std::map<int, Connection>::iterator at) {
  shares_.remove(payer(at->second.guest));
  open_.erase(at);
}

}  // namespace gpumeter::jobs
